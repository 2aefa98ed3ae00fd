"""Tables of experiments/sampling.py: answers about what was read, and free writing."""

from __future__ import annotations

from results_tables import Cell, Grid, Line, Row

_SETTINGS = {
    "greedy": "greedy",
    "0.3, p 0.9": "0.3, top-p 0.9",
    "0.3, p 0.9, penalty 1.1": "**0.3, top-p 0.9, penalty 1.1**",
    "0.7, p 0.9, penalty 1.1": "0.7, top-p 0.9, penalty 1.1",
}
_DEFAULT = "0.3, p 0.9, penalty 1.1"


def _of(field: str, whole: str) -> Cell:
    """How many of how many."""

    def cell(rows: list[Row]) -> str:
        (row,) = rows
        return f"{row[field]:,} of {row[whole]:,}"

    return cell


def _distinct(rows: list[Row]) -> str:
    (row,) = rows
    return f"{row['distinct']:.2f}"


def _line(file: str, setting: str, *labels: str) -> Line:
    is_default = file.startswith("smollm2") and setting == _DEFAULT
    where = {"setting": setting}
    return Line((*labels, _SETTINGS[setting]), f"sampling/{file}.json", where, is_default)


QUESTIONS = Grid(
    ("model", "questions", "temperature"),
    (("right", _of("right", "answers")),),
    tuple(
        _line(file, setting, model, which)
        for model, which, file in (
            ("SmolLM2", "first eight", "smollm2-first"),
            ("SmolLM2", "eight others", "smollm2-unseen"),
            ("Gemma 3", "first eight", "gemma-first"),
        )
        for setting in ("greedy", _DEFAULT, "0.7, p 0.9, penalty 1.1")
    ),
)
FREE = Grid(
    ("model", "what is asked", "temperature"),
    (
        ("ended", _of("ended", "prompts")),
        ("loops", _of("loops", "prompts")),
        ("distinct", _distinct),
        ("noticed", _of("noticed", "prompts")),
        ("tokens saved", _of("tokens_saved", "tokens")),
    ),
    (
        *(_line("smollm2-free", one, "SmolLM2", "free prompts") for one in ("greedy", _DEFAULT)),
        _line("gemma-free", _DEFAULT, "Gemma 3", "free prompts"),
        *(
            _line("smollm2-document", one, "SmolLM2", "a document of 8,359 tokens")
            for one in ("0.3, p 0.9", _DEFAULT)
        ),
    ),
)
