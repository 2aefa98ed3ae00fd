"""Tables of experiments/sampling.py: answers about paragraphs, and free writing."""

from __future__ import annotations

from results_tables import Cell, Grid, Line, Row

_SETTINGS = {
    "greedy": "greedy",
    "0.3, p 0.9": "0.3, top-p 0.9",
    "0.3, p 0.9, penalty 1.1": "**0.3, top-p 0.9, penalty 1.1, the default**",
    "0.7, p 0.9, penalty 1.1": "0.7, top-p 0.9, penalty 1.1",
}


def _of(field: str, whole: str) -> Cell:
    """How many of how many."""

    def cell(rows: list[Row]) -> str:
        (row,) = rows
        return f"{row[field]} of {row[whole]}"

    return cell


def _distinct(rows: list[Row]) -> str:
    (row,) = rows
    return f"{row['distinct']:.2f}"


def _line(model: str, file: str, setting: str, *more: str) -> Line:
    is_default = model == "SmolLM2" and "default" in _SETTINGS[setting]
    labels = (model, *more, _SETTINGS[setting])
    return Line(labels, f"sampling/{file}.json", {"setting": setting}, is_default)


QUESTIONS = Grid(
    ("model", "questions", "temperature"),
    (("right", _of("right", "answers")),),
    tuple(
        _line(model, file, setting, which)
        for model, which, file in (
            ("SmolLM2", "first eight", "smollm2-first"),
            ("SmolLM2", "eight unseen", "smollm2-unseen"),
            ("Gemma 3", "first eight", "gemma-first"),
        )
        for setting in _SETTINGS
    ),
)
FREE = Grid(
    ("model", "temperature"),
    (
        ("ended", _of("ended", "prompts")),
        ("loops", _of("loops", "prompts")),
        ("distinct", _distinct),
    ),
    (
        _line("SmolLM2", "smollm2-free", "0.3, p 0.9, penalty 1.1"),
        _line("SmolLM2", "smollm2-free-greedy", "greedy"),
        _line("Gemma 3", "gemma-free", "0.3, p 0.9, penalty 1.1"),
        _line("Gemma 3", "gemma-free", "greedy"),
    ),
)
