"""Tables of `scripts/serve_figures.py`: how long a client waits for a first token."""

from __future__ import annotations

from results_tables import Cell, Grid, Line, Row, chosen, one, rows_of

_QUESTIONS = {
    "the first question": "first",
    "the second": "second, conversation resent",
    "the second, after a restart": "second, after a restart",
}


def _after(question: str) -> Cell:
    """Seconds until the first token; a dash where it wasn't asked."""

    def cell(rows: list[Row]) -> str:
        for row in rows:
            if row["question"].partition(" (")[0] == question:
                return f"{row['ttft_s']:,.{0 if row['ttft_s'] >= 100 else 2}f}"
        return "–"

    return cell


def _peak(rows: list[Row]) -> str:
    return f"{max(row['peak_mb'] or 0 for row in rows):,.0f}"


def _wait(ours: str, theirs: str) -> Grid:
    return Grid(
        ("first token after, s",),
        (*((name, _after(question)) for name, question in _QUESTIONS.items()), ("peak, MB", _peak)),
        (
            Line(("**this server**",), ours, {}),
            Line(("llama-cpp-python's, prompts in memory",), theirs, {}, question="ram cache"),
            Line(("llama-cpp-python's, prompts on disk",), theirs, {}, question="disk cache"),
        ),
    )


WAIT = _wait("server/wait.json", "server/wait-llama.cpp.json")
WAIT_SHORT = _wait("server/wait-short.json", "server/wait-llama.cpp-short.json")
_SESSIONS = "server/sessions.json"
SESSIONS = Grid(
    ("sessions",),
    (("peak, MB", one("peak_mb", "{:,.0f}")),),
    tuple(
        Line((f"{row['sessions']}",), _SESSIONS, {"sessions": row["sessions"]})
        for row in rows_of(_SESSIONS)
    ),
)


def _turn(number: int) -> tuple[str, Cell]:
    """Seconds until the first piece of a turn; a dash where it wasn't asked."""

    def cell(rows: list[Row]) -> str:
        found = chosen(rows, turn=number)
        return f"{found[0]['ttft_s']:.2f}" if found else "–"

    return f"turn {number}", cell


def _peak_of(rows: list[Row]) -> str:
    (peak,) = (row["peak_mb"] for row in rows if "peak_mb" in row)
    return f"{peak:,.0f}"


_TURNS, _THEIRS = "server/turns.json", "server/turns-llama.cpp.json"
TURNS = Grid(
    ("first piece of the answer after, s",),
    (*(_turn(number) for number in (1, 10, 25, 50)), ("peak, MB", _peak_of)),
    tuple(
        Line((label,), file, {"way": way})
        for label, file, way in (
            ("**`previous_response_id`**", _TURNS, "previous_response_id"),
            ("the history resent", _TURNS, "history resent"),
            ("the history resent, nothing kept", _TURNS, "history resent, nothing kept"),
            ("llama.cpp's server, the history resent", _THEIRS, "llama.cpp, history resent"),
        )
    ),
)
_HEALTH = "server/health.json"
HEALTH = Grid(
    ("what is read",),
    (
        ("alone, s", one("read_s", "{:.1f}")),
        ("its peak, MB", one("read_mb", "{:,.0f}")),
        ("what comes of it", lambda rows: rows[0].get("outcome", "–")),
        ("asked", one("asked", "{:,.0f}")),
        ("median, ms", one("median_ms", "{:.1f}")),
        ("99 %, ms", one("p99_ms", "{:.1f}")),
        ("slowest, ms", one("slowest_ms", "{:.1f}")),
    ),
    tuple(
        Line(
            ("nothing" if row["document"] == "none" else row["document"],),
            _HEALTH,
            {"document": row["document"]},
        )
        for row in rows_of(_HEALTH)
    ),
)
