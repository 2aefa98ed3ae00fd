"""A few made-up paragraphs with questions, in SQuAD's format."""

from __future__ import annotations

import json
from pathlib import Path

NAMES = ("Ada", "Bo", "Cy", "Di")


def _answers(name: str) -> list[dict]:
    return [{"text": text, "answer_start": 0} for text in (name, "nobody")]


def tiny_squad(path: Path) -> Path:
    """One article of four paragraphs; each has a question with answers and one without."""
    paragraphs = [
        {
            "context": f"{name} has a dog. The dog of {name} is called {name}y.",
            "qas": [
                {"question": f"Who has {name}y?", "answers": _answers(name)},
                {"question": "Who has a cat?", "answers": []},
            ],
        }
        for name in NAMES
    ]
    path.write_text(json.dumps({"data": [{"title": "Dogs", "paragraphs": paragraphs}]}))
    return path
