"""Tables of `evaluate conversation`: facts told in chats with tools, asked for at the end."""

from __future__ import annotations

from results_tables import Cell, Grid, Line, Row, count, mean, percent

_SMOLLM2 = "recall/conversation-smollm2.json"
_GEMMA = "recall/conversation-gemma.json"
_LABELS = {
    "edgeinfinite": "**EdgeInfinite**",
    "streaming": "StreamingLLM",
    "summary": "summaries by the model",
    "extract": "sentences that the scorer keeps",
    "newest": "newest tokens",
    "empty": "nothing of the chat",
}
_STATES = ("edgeinfinite", "streaming")


def _in_text(rows: list[Row]) -> str:
    """The share of answers that stand in the text that was read; all of it for a state."""
    if rows[0]["method"] in _STATES:
        return "all read"
    return f"{100 * sum(row['in_text'] for row in rows) / len(rows):.0f} %"


def _line(tokens: int, method: str, rows: str = _SMOLLM2) -> Line:
    where = {"prompt_tokens": tokens, "method": method}
    is_default = method == "edgeinfinite" and rows == _SMOLLM2
    return Line((f"{tokens:,}", _LABELS[method]), rows, where, is_default)


def _megabytes(rows: list[Row]) -> str:
    return f"{rows[0]['state_bytes'] / 1e6:.1f}"


_COLUMNS: tuple[tuple[str, Cell], ...] = (
    ("MB", _megabytes),
    ("facts", count),
    ("exact", percent("correct")),
    ("nats", mean("nats_per_digit_token", "{:.2f}")),
    ("answers left in the text", _in_text),
    ("compactions", mean("compactions", "{:.0f}")),
)


CONVERSATION = Grid(
    ("chat", "what is kept"),
    _COLUMNS,
    (
        *(_line(8000, method) for method in _LABELS),
        *(_line(32000, method) for method in _LABELS if method != "empty"),
        *(_line(128_000, m) for m in ("edgeinfinite", "streaming", "extract", "newest")),
    ),
)
CONVERSATION_GEMMA = Grid(
    ("chat", "what is kept"),
    _COLUMNS,
    (
        *(_line(8000, method, _GEMMA) for method in _LABELS),
        *(_line(32000, method, _GEMMA) for method in _LABELS if method != "empty"),
        *(_line(128_000, m, _GEMMA) for m in ("edgeinfinite", "streaming", "extract", "newest")),
    ),
)
