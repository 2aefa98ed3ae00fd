"""Every method reads a chat, or what it leaves of it, and is asked for each fact from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from edgeinfinite.evaluation.artifact_reader import ArtifactReader
from edgeinfinite.evaluation.conversation.chat import Chat, draw_chat
from edgeinfinite.evaluation.conversation.options import STATES, ConversationOptions
from edgeinfinite.evaluation.conversation.summaries import (
    extracted_summary,
    request_tokens,
    slots_for_scores,
    written_summary,
)
from edgeinfinite.evaluation.conversation.systems import ChatSystem
from edgeinfinite.evaluation.conversation.window import Cut, Window, compacted, newest
from edgeinfinite.evaluation.methods import Reader
from edgeinfinite.evaluation.results import Progress, Results, Row
from edgeinfinite.evaluation.told_in_chat import Message, chat_text
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from edgeinfinite.training.texts import encode

Reading = tuple[int, int, str]
"""Length, seed and method."""


def planned(options: ConversationOptions) -> list[Reading]:
    """Every reading, short chats first."""
    return [
        (length, options.seed + sample, method)
        for length in sorted(options.lengths)
        for sample in range(options.samples)
        for method in options.methods
    ]


def measure_conversation(
    system: ChatSystem,
    documents: Sequence[Path],
    options: ConversationOptions,
    results: Results,
    progress: Progress,
) -> None:
    """Measures every reading that isn't in `results` yet, method by method for each chat.

    Args:
        system: what to read with.
        documents: texts that no trained part has seen, for the tools' outputs.
        options: the chats.
        results: takes the rows.
        progress: see `results.Progress`.

    Raises:
        EdgeInfiniteError: see `draw_chat`, `compacted` and `token_scores`.
    """
    for length, seed, method in planned(options):
        if results.has(method=method, prompt_tokens=length, seed=seed):
            progress("", length)
            continue
        chat = draw_chat(documents, system.tokenizer, length, seed, options)
        seen = 0

        def show(new: int, method: str = method) -> None:
            nonlocal seen
            seen += new
            progress(method, new)

        cut = left_of(chat, method, system, seed, show)
        reader = system.open_state() if method == "edgeinfinite" else system.open_cache()
        reader.skip(cut.tokens, show if method in STATES else None)
        progress(method, length - seen)  # the chat is shorter than planned by less than a turn
        row = {"method": method, "prompt_tokens": length, "seed": seed}
        row |= {"chat_tokens": len(chat.tokens), "read_tokens": len(cut.tokens)}
        row |= {"compactions": cut.compactions}
        text = str(system.tokenizer.decode(cut.tokens))
        results.add([row | asked for asked in _asked(reader, chat, text)])


def left_of(
    chat: Chat, method: str, system: ChatSystem, seed: int, progress: Callable[[int], None]
) -> Cut:
    """What a method reads of a chat before it is asked.

    Args:
        chat: all of it.
        method: one of `METHODS`.
        system: writes summaries, or scores sentences.
        seed: of the sampling of summaries.
        progress: called with the number of tokens of the chat that a client has been through.
    """
    window = Window(system.window, system.tokenizer)
    if method in STATES:
        return Cut(chat.tokens)
    if method == "newest":
        return newest(chat, window)
    if method == "empty":
        return Cut(encode(chat_text(system.tokenizer, chat.messages[:1]), system.tokenizer))
    if method == "extract":

        def extract(messages: list[Message], stay: int) -> str:
            reader = system.open_state()
            return extracted_summary(reader, reader.session, window, messages, stay)

        spare = window.tokens - slots_for_scores(system.open_state().session)
        return compacted(chat, window, extract, spare, progress)
    sampler = Sampler(SamplingOptions(**system.sampling, seed=seed))

    def write(messages: list[Message], stay: int) -> str:
        del stay  # the newest turns are summarised, too, as agents have it
        return written_summary(system.open_cache(), window, messages, sampler, system.stop_ids)

    system_only = chat.messages[:1]
    asks = len(request_tokens(window, system_only)) - window.length(system_only)
    return compacted(chat, window, write, asks + window.summary, progress)


def _asked(reader: ArtifactReader | Reader, chat: Chat, text: str) -> Iterator[Row]:
    """Asks each question from the same state, so that questions can't help each other."""
    restore = reader.save()
    for question in chat.questions:
        restore()
        reader.skip(question.asked)
        prediction = reader.read(question.answer)
        yield {
            "depth": question.depth,
            "kind": question.fact.kind,
            "correct": bool(prediction.best.all()),
            "nats_per_digit_token": float(prediction.nats.mean()),
            "answer_tokens": len(question.answer),
            "in_text": question.fact.answer.strip() in text,
            "state_bytes": reader.state_bytes,
        }
