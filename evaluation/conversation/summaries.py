"""Summaries of a history: written by the model, or the sentences that a retention scorer keeps."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import cycle, islice

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.conversation.chat import SYSTEM
from edgeinfinite.evaluation.conversation.window import HEADING, Window
from edgeinfinite.evaluation.reader import TextReader
from edgeinfinite.evaluation.told_in_chat import Message, chat_text
from edgeinfinite.runtime_py.answer.sampling import Sampler
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.training.texts import encode

REQUEST = (
    "Write a summary of the conversation so far. It takes the place of the conversation, so keep "
    "everything that I told you in my own words, with every name, number and word of it, and leave "
    "out what the tools said. Answer with the summary alone."
)
_PIECE_END = re.compile(r"\n+|(?<=[.!?])\s+")
_WORD = re.compile(r"\w+")
_FEWEST_WORDS = 3


def request_tokens(window: Window, messages: Sequence[Message]) -> list[int]:
    """The history with the request for its summary, up to where the model's answer begins."""
    text = window.tokenizer.apply_chat_template(
        [*messages, {"role": "user", "content": REQUEST}],
        tokenize=False,
        add_generation_prompt=True,
    )
    return encode(str(text), window.tokenizer)


def written_summary(
    reader: TextReader,
    window: Window,
    messages: Sequence[Message],
    sampler: Sampler,
    stop_ids: Collection[int],
) -> str:
    """The model's own summary.

    Args:
        reader: that has read nothing and holds a window whole.
        window: the window; the answer has at most its `summary` tokens.
        messages: the history.
        sampler: chooses the tokens.
        stop_ids: end the answer.
    """
    reader.skip(request_tokens(window, messages))
    answer: list[int] = []
    while len(answer) < window.summary:
        token = sampler.sample(reader.logits, answer=answer)
        if token in stop_ids:
            break
        answer.append(token)
        if len(answer) < window.summary:
            reader.skip([token])
    return str(window.tokenizer.decode(answer, skip_special_tokens=True)).strip()


def extracted_summary(
    reader: TextReader,
    session: Session,
    window: Window,
    messages: Sequence[Message],
    stay: int,
) -> str:
    """The sentences and lines whose tokens score highest on average, in their order.

    Args:
        reader: of a state with recall slots, that has read nothing.
        session: the reader's.
        window: the summary has at most its `summary` tokens.
        messages: the history.
        stay: how many of the last messages aren't summarised, because they stay.
    """
    text = chat_text(window.tokenizer, messages)
    encoded = window.tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    scores = token_scores(reader, session, list(encoded.input_ids))
    ends = np.array([end for _, end in encoded.offset_mapping])
    found: dict[str, tuple[float, int, int]] = {}  # score, place, tokens
    for start, end in _pieces(text, messages[: len(messages) - stay]):
        first, last = np.searchsorted(ends, (start, end - 1), side="right")
        own, piece = scores[first : last + 1], text[start:end]
        new = piece not in found and piece not in SYSTEM and piece != HEADING
        if new and not np.isnan(own).all():
            found[piece] = float(np.nanmean(own)), start, len(own) + 1
    left, chosen = window.summary, list[tuple[int, str]]()
    for piece, (_, place, tokens) in sorted(found.items(), key=lambda item: -item[1][0]):
        if tokens <= left:
            left -= tokens
            chosen.append((place, piece))
    return "\n".join(piece for _, piece in sorted(chosen))


def token_scores(reader: TextReader, session: Session, tokens: Sequence[int]) -> np.ndarray:
    """What the retention scorer says of each token: `[n]` float64, nan for the sinks.

    It is the mean over the heads of the layers whose slots still hold every token, as the state
    keeps it beside them; scores of all heads are pooled in it. A token gets its score when it
    leaves the window; so as many tokens are read behind the text as the window holds. They change
    nothing before them.

    Args:
        reader: that has read nothing.
        session: the reader's.
        tokens: of the text, n of them.

    Raises:
        EdgeInfiniteError: no head scores, or the slots don't hold all of the text.
    """
    geometry = session.engine.geometry
    behind = geometry.window_length + geometry.segment_length
    reader.skip([*tokens, *islice(cycle(tokens), behind)])
    sinks, newest = geometry.sink_length, len(session.residual)
    of_layers, dropped = list[np.ndarray](), False
    for layer in range(len(session.state.length)):
        scores = session.state.arrays.get(f"scores_{layer}")
        if scores is None:
            continue
        held = int(session.state.length[layer]) - sinks - newest
        if sinks + held + newest < session.tokens_read:
            dropped = True
        else:
            of_layers.append(np.asarray(scores, np.float64)[0, :, :held].mean(0))
    if not of_layers:
        raise EdgeInfiniteError(
            f"the recall slots don't hold {len(tokens):,} tokens, so the scorer can't choose "
            "sentences of them; leave the method extract out"
            if dropped
            else "no head scores what it keeps; leave the method extract out"
        )
    found = np.full(len(tokens), np.nan)
    known = np.mean(of_layers, axis=0)[: len(tokens) - sinks]
    found[sinks : sinks + len(known)] = known
    return found


def slots_for_scores(session: Session) -> int:
    """The longest text of which every token is held and scored, in the layers with most slots."""
    geometry = session.engine.geometry
    slots = [
        geometry.slots_of(layer)
        for layer in range(len(session.state.length))
        if f"scores_{layer}" in session.state.arrays
    ]
    return geometry.sink_length + max(slots, default=0)


def _pieces(text: str, messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Where the sentences and lines of the messages begin and end in their rendering."""
    at = 0
    for message in messages:
        content = message["content"].strip()
        at = text.index(content, at)
        start = 0
        for end in [*_PIECE_END.finditer(content), None]:
            stop = len(content) if end is None else end.start()
            if len(_WORD.findall(content[start:stop])) >= _FEWEST_WORDS:
                yield at + start, at + stop
            start = len(content) if end is None else end.end()
        at += len(content)
