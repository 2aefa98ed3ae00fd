"""A folder as a user's copy of LongBench: made-up rows of a few of its tasks, in its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROMPTS = {
    "qasper": "Read.\n\n{context}\n\nQuestion: {input}\nAnswer:",
    "trec": "Examples.\n\n{context}\n{input}",
    "samsum": "Summarize.\n\n{context}\n\n{input}",
    "multifieldqa_zh": "阅读：\n\n{context}\n\n问题：{input}\n回答：",
    "lcc": "Complete.\n{context}Next line of code:\n",
}
LENGTHS = {"qasper": 8, "trec": 6, "samsum": 6, "multifieldqa_zh": 5, "lcc": 7}


def row(name: str, context: str, question: str, *answers: str, **more: Any) -> dict[str, Any]:
    return {
        "_id": name,
        "context": context,
        "input": question,
        "answers": list(answers),
        "all_classes": None,
        "language": "en",
        "dataset": "",
        "length": 0,
    } | more


ROWS = {
    "qasper": [
        row("q0", "A dog went home. " * 12, "Who went?", "A dog", "the dog"),
        row("q1", "A cat went away. " * 15, "Who went?", "A cat"),
    ],
    "trec": [
        row("t0", "Question: When?\nType: Date\n" * 5, "Question: Who?\nType:", "Person",
            all_classes=["Person", "Date"]),
    ],
    "samsum": [
        row("s0", "Dialogue: A: Hi\nSummary: Hi.\n" * 5, "Dialogue: B: Yo\nSummary: ", "Yo")
    ],
    "multifieldqa_zh": [row("z0", "我来到北京。" * 8, "哪里？", "北京")],
    "lcc": [row("c0", "a = 1\nb = 2\n" * 10, "", "c = 3")],
}  # fmt: skip


def tiny_longbench(folder: Path, **rows: list[dict[str, Any]]) -> Path:
    """`folder` with prompts, answer lengths and the rows above, or those given instead."""
    (folder / "data").mkdir(parents=True)
    (folder / "dataset2prompt.json").write_text(json.dumps(PROMPTS), encoding="utf-8")
    (folder / "dataset2maxlen.json").write_text(json.dumps(LENGTHS), encoding="utf-8")
    for task, of_task in (rows or ROWS).items():
        lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in of_task)
        (folder / "data" / f"{task}.jsonl").write_text(lines, encoding="utf-8")
    return folder
