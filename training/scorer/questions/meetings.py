"""Meetings with questions about what was said (QMSum's format)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file
from edgeinfinite.training.scorer.composed import Composed, Piece, assemble

_END_TOKENS = 400
"""Room for the questions at the end, with their answers."""
_MOST_QUESTIONS = 3
_MOST_ASKED = 0.25
"""The largest share of the turns that counts as asked for."""


@dataclass(frozen=True)
class Query:
    """A question about a meeting.

    Args:
        text: the question.
        answer: a few sentences.
        spans: first and last turn of each stretch that answers it.
    """

    text: str
    answer: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Meeting:
    """What was said, turn by turn, and what people asked about it."""

    turns: tuple[str, ...]
    queries: tuple[Query, ...]


class Meetings:
    """Composes stretches of meetings with questions at the end."""

    def __init__(self, meetings: Sequence[Meeting]) -> None:
        """Takes meetings with a question each, or more."""
        self._meetings = meetings

    def compose(
        self, tokenizer: PreTrainedTokenizerBase, length: int, random: np.random.Generator
    ) -> Composed:
        """A stretch that begins where the answer of some question begins, or up to 40 turns before.

        Asked are that question and others whose answers lie within the stretch.
        """
        meeting = self._meetings[int(random.integers(len(self._meetings)))]
        first = meeting.queries[int(random.integers(len(meeting.queries)))]
        start = max(0, first.spans[0][0] - int(random.integers(40)))
        end = self._end(meeting, start, tokenizer, length - _END_TOKENS)
        inside = [query for query in meeting.queries if _lies_in(query, start, end)]
        order = [inside[int(i)] for i in random.permutation(len(inside))][:_MOST_QUESTIONS]
        asked = [first, *(query for query in order if query is not first)][:_MOST_QUESTIONS]
        turns = _answering(asked)
        if len(turns) > _MOST_ASKED * (end - start):
            turns = set()  # a summary asks for everything, so nothing stands out
        pieces = [Piece(meeting.turns[i], i in turns) for i in range(start, end)]
        questions = "".join(f"\n\nQuestion: {one.text}\nAnswer: {one.answer}" for one in asked)
        return assemble(pieces, questions, tokenizer, length)

    @staticmethod
    def _end(meeting: Meeting, start: int, tokenizer: PreTrainedTokenizerBase, room: int) -> int:
        for index in range(start, len(meeting.turns)):
            room -= len(tokenizer(meeting.turns[index], add_special_tokens=False).input_ids)
            if room < 0:
                return index
        return len(meeting.turns)


def read_meetings(path: Path) -> Meetings:
    """Reads QMSum's .jsonl: one meeting a line.

    Raises:
        EdgeInfiniteError: it isn't such a file, or nobody asks about its meetings.
    """
    try:
        lines = [json.loads(line) for line in read_text_file(path).splitlines() if line.strip()]
        meetings = [
            Meeting(
                tuple(f"{t['speaker']}: {t['content']}\n" for t in line["meeting_transcripts"]),
                tuple(_queries(line["specific_query_list"])),
            )
            for line in lines
        ]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise EdgeInfiniteError(f"{path} isn't a file of meetings as QMSum has them") from error
    meetings = [meeting for meeting in meetings if meeting.turns and meeting.queries]
    if not meetings:
        raise EdgeInfiniteError(f"{path} has no meeting with a question")
    return Meetings(meetings)


def _queries(entries: Sequence[dict]) -> list[Query]:
    return [
        Query(
            one["query"],
            one["answer"],
            tuple((int(low), int(high)) for low, high in one["relevant_text_span"]),
        )
        for one in entries
        if one["relevant_text_span"]
    ]


def _answering(queries: Sequence[Query]) -> set[int]:
    return {turn for one in queries for low, high in one.spans for turn in range(low, high + 1)}


def _lies_in(query: Query, start: int, end: int) -> bool:
    return all(start <= low and high < end for low, high in query.spans)
