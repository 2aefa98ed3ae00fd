"""Tables of `evaluate passkey`: planted facts, asked for at the end of a text."""

from __future__ import annotations

from statistics import fmean

from results_tables import Grid, Line, Row, count, mean, percent

_FULL, _OURS, _STREAMING = "recall/full.json", "recall/slots-512.json", "recall/streaming-1152.json"
_MORE, _STREAMING_MORE = "recall/slots-1920-two-networks.json", "recall/streaming-2548.json"
_DEFAULT, _DEFAULT_16000 = "recall/default.json", "recall/default-16000.json"
_EXACT = percent("correct")
_NATS = mean("nats_per_digit_token", "{:.2f}")


def _line(tokens: int, label: str, file: str, size: str, default: bool = False) -> Line:
    return Line((f"{tokens:,}", label, size), file, {"prompt_tokens": tokens}, default)


def _default(tokens: int, label: str, size: str) -> Line:
    file = _DEFAULT_16000 if tokens == 16000 else _DEFAULT
    return _line(tokens, label, file, size, default=True)


def _ours(tokens: int, file: str = _OURS) -> Line:
    return _line(tokens, "512 slots", file, "26.7")


def _fewer(tokens: int) -> Line:
    return _line(
        tokens, "853 slots, int8: 2,048 or 256 in a layer", "recall/slots-853.json", "17.4"
    )


_BYTES = ("**1,536 slots, int8, the default**", "25.4")


RECALL = Grid(
    ("prompt", "", "MB"),
    (
        ("facts", count),
        ("exact", _EXACT),
        ("nats", _NATS),
        *(
            (kind, mean("nats_per_digit_token", "{:.2f}", kind=kind))
            for kind in ("numbers", "words", "names", "sentences")
        ),
    ),
    (
        _line(4000, "full attention", _FULL, "grows"),
        _default(4000, *_BYTES),
        _fewer(4000),
        _ours(4000),
        _line(4000, "1,920 slots", _MORE, "59.1"),
        _line(7500, "full attention", _FULL, "grows"),
        _default(7500, *_BYTES),
        _fewer(7500),
        _ours(7500),
        _line(7500, "StreamingLLM", _STREAMING, "26.5"),
        _line(7500, "1,920 slots", _MORE, "59.1"),
        _line(7500, "StreamingLLM", _STREAMING_MORE, "58.7"),
        _default(16000, *_BYTES),
        _ours(16000),
        _line(16000, "1,920 slots", _MORE, "59.1"),
        _ours(64000, "recall/slots-512-64k.json"),
        _line(64000, "1,920 slots \\*", "recall/slots-1920-64k.json", "59.1"),
        _ours(128000),
        _line(128000, "1,920 slots \\*", "recall/slots-1920.json", "59.1"),
    ),
)

README_RECALL = Grid(
    ("prompt", "cache", "state"),
    (("facts", count), ("exact answers", _EXACT), ("nats per answer token", _NATS)),
    (
        _line(4000, "full attention", _FULL, "grows"),
        _line(7500, "full attention", _FULL, "grows"),
        _default(7500, "**EdgeInfinite**", "25.4 MB"),
        _line(7500, "StreamingLLM", _STREAMING, "26.5 MB"),
        _default(16000, "**EdgeInfinite**", "25.4 MB"),
    ),
)

DIGITS = Grid(
    ("tokens", "prompt"),
    (
        ("facts", count),
        ("exact", _EXACT),
        ("nats", _NATS),
        *(
            (kind, mean("nats_per_digit_token", "{:.2f}", kind=kind))
            for kind in ("numbers", "words")
        ),
    ),
    tuple(
        Line((when, f"{tokens:,}"), f"recall/digits-{when}.json", {"prompt_tokens": tokens})
        for tokens in (4000, 7500)
        for when in ("before", "after")
    ),
)


def _nats(rows: list[Row]) -> str:
    """The mean of what a task's rows call their loss."""
    fields = ("nats_per_digit_token", "answer_nats", "nats_per_token")
    field = next(name for name in fields if name in rows[0])
    return f"{fmean(row[field] for row in rows):.2f}"


def _exact(rows: list[Row]) -> str:
    return _EXACT(rows) if "correct" in rows[0] else "–"


def _task(label: str, name: str, method: str = "artifact") -> Line:
    return Line((label,), f"recall/default-{name}.json", {"method": method}, default=True)


OTHER_TASKS = Grid(
    ("the default",),
    (("rows", count), ("exact", _exact), ("nats", _nats)),
    (
        _task("facts told in a chat, thirty turns later, 7,500 tokens", "chat"),
        _task("SQuAD, eight questions in turn, 7,500 tokens", "squad"),
        _task("LongBench, English and code, to 7,900 tokens", "longbench"),
        _task("the same without the text", "longbench", "empty"),
        _task("ordinary text, by position, 6,144 tokens of four books", "text"),
    ),
)
