"""A chat cut to a window: nothing outside it is seen, by a summary or by a question."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_artifact import tiny_checkpoint
from tiny_babi import tiny_books
from transformers import AutoTokenizer

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.conversation.chat import SYSTEM, Chat, draw_chat
from edgeinfinite.evaluation.conversation.options import ConversationOptions
from edgeinfinite.evaluation.conversation.window import HEADING, Window, compacted, newest

LENGTH, TOKENS, RESERVE = 24_000, 6000, 900


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Window:
    folder = tiny_checkpoint(tmp_path_factory.mktemp("tiny"))
    return Window(TOKENS, AutoTokenizer.from_pretrained(folder))


@pytest.fixture(scope="module")
def chat(window: Window, tmp_path_factory: pytest.TempPathFactory) -> Chat:
    books: list[Path] = sorted(tiny_books(tmp_path_factory.mktemp("data") / "books").iterdir())
    return draw_chat(books, window.tokenizer, LENGTH, 0, ConversationOptions(facts=8))


def test_newest_keeps_the_systems_message_and_the_last_tokens(chat, window):
    cut = newest(chat, window)
    assert len(cut.tokens) + chat.room == TOKENS
    text = window.tokenizer.decode(cut.tokens)
    system = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"
    assert text.startswith(system)
    tail = text.removeprefix(system)
    assert window.tokenizer.decode(chat.tokens).endswith(tail)
    for question in chat.questions:
        told_at = question.depth * LENGTH
        if told_at < len(chat.tokens) - TOKENS:
            assert question.fact.statement not in text
        elif told_at > len(chat.tokens) - TOKENS + 1000:
            assert question.fact.statement in text


def test_a_summary_sees_what_the_window_holds_and_nothing_else(chat, window):
    seen: list[tuple[list[dict[str, str]], int]] = []

    def summarise(messages, stay):
        seen.append((messages, stay))
        return f"summary {len(seen)}"

    played: list[int] = []
    cut = compacted(chat, window, summarise, RESERVE, played.append)
    assert cut.compactions == len(seen) > 3
    rest, at = chat.messages[1:], 0
    for number, (messages, stay) in enumerate(seen):
        assert window.length(messages) + RESERVE <= TOKENS
        assert window.length(messages) > TOKENS / 3, "not before the window is full"
        head, *turns = messages
        expected = f"{SYSTEM}\n\n{HEADING}\nsummary {number}" if number else SYSTEM
        assert head == {"role": "system", "content": expected}
        assert turns == rest[at : at + len(turns)], "the turns since the summary before"
        assert stay % 2 == 0 and stay < len(turns)
        at += len(turns) - stay
    text = window.tokenizer.decode(cut.tokens)
    assert text.count(HEADING) == 1 and f"{HEADING}\nsummary {len(seen)}<|im_end|>" in text
    assert len(cut.tokens) + max(chat.room, RESERVE) <= TOKENS
    assert sum(played) == len(chat.tokens) - window.length(chat.messages[:1])


def test_what_no_summary_repeats_is_gone_and_what_it_repeats_stays(chat, window):
    first, last = chat.questions[0].fact, chat.questions[-1].fact

    def forgets(messages, stay):
        return "nothing of note"

    def remembers(messages, stay):
        return first.statement if any(first.statement in m["content"] for m in messages) else ""

    for summarise, stays in ((forgets, False), (remembers, True)):
        text = window.tokenizer.decode(compacted(chat, window, summarise, RESERVE).tokens)
        assert (first.statement in text) == stays
        assert last.statement in text, "the newest turns stay"


def test_a_chat_that_fits_is_left_as_it_is(chat, window):
    def never(messages, stay):
        raise AssertionError("there is nothing to summarise")

    wide = Window(2 * LENGTH, window.tokenizer)
    assert compacted(chat, wide, never, RESERVE).tokens == newest(chat, wide).tokens == chat.tokens


def test_a_window_too_small_for_a_turn_is_refused(chat, window):
    small = Window(700, window.tokenizer)
    with pytest.raises(EdgeInfiniteError, match="a window of 700 tokens is too small"):
        compacted(chat, small, lambda messages, stay: "", 0)
    with pytest.raises(EdgeInfiniteError, match="a window of 400 tokens is too small"):
        newest(chat, Window(400, window.tokenizer))
