"""Training texts made of questions that people asked: what is marked is what answers them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_artifact import tiny_checkpoint
from transformers import AutoTokenizer

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.training.scorer.composed import Composed
from edgeinfinite.training.scorer.questions.sources import question_files, question_sources

ARTICLES = {
    "data": [
        {
            "title": "Dogs",
            "paragraphs": [
                {
                    "context": f"Dog {i} is old. Its name is Rex{i}. It sleeps a lot.",
                    "qas": [
                        {
                            "question": f"What is the name of dog {i}?",
                            "answers": [{"text": f"Rex{i}", "answer_start": 25 + len(str(i))}],
                        },
                        {"question": "Is there a cat?", "answers": []},
                    ],
                }
                for i in range(60)
            ],
        }
    ]
}
LABELS = "text,category\n" + "".join(
    f'"word{i} of {label}",{label}_label\n' for i in range(12) for label in ("red", "blue", "green")
)
MEETING = {
    "meeting_transcripts": [{"speaker": "A", "content": f"point {i}"} for i in range(60)],
    "specific_query_list": [
        {"query": "What of 20?", "answer": "It is 20.", "relevant_text_span": [["20", "21"]]}
    ],
}
STORY = (
    "1 Ann went home.\n2 Bob went away.\n3 Where is Ann? \thome\t1\n"
    "1 Cy went out.\n2 Where is Cy? \tout\t1\n"
)
KINDS = {
    "squad.json": json.dumps(ARTICLES),
    "labels.csv": LABELS,
    "clinc.json": json.dumps({"train": [[f"say {i}", f"intent_{i % 3}"] for i in range(30)]}),
    "meetings.jsonl": json.dumps(MEETING) + "\n",
    "babi.txt": STORY,
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return AutoTokenizer.from_pretrained(tiny_checkpoint(tmp_path_factory.mktemp("t") / "tiny"))


@pytest.fixture
def document(tmp_path) -> Path:
    path = tmp_path / "document.txt"
    path.write_text("A long day. " * 2000)
    return path


def compose(
    name: str, folder: Path, document: Path, tokenizer, seed: int, length=1500
) -> tuple[Composed, str, str]:
    """A text of one kind of file; the marked characters and the end, decoded."""
    (folder / name).write_text(KINDS[name])
    [source] = question_sources([folder / name], [document])
    text = source.compose(tokenizer, length, np.random.default_rng(seed))
    marked = tokenizer.decode([text.tokens[i] for i in text.planted])
    return text, marked, tokenizer.decode(text.tokens[-text.asking :])


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_text_fits_its_length_and_marks_tokens_before_the_questions(
    tmp_path, document, tokenizer, name, seed
):
    text, _, _ = compose(name, tmp_path, document, tokenizer, seed)
    assert 0 < text.asking < len(text.tokens) <= 1500
    assert text.planted == sorted(set(text.planted))
    assert all(0 <= place < len(text.tokens) - text.asking for place in text.planted)


@pytest.mark.parametrize("seed", range(6))
def test_the_sentence_that_answers_is_marked_and_no_other(tmp_path, document, tokenizer, seed):
    text, marked, end = compose("squad.json", tmp_path, document, tokenizer, seed)
    whole = tokenizer.decode(text.tokens)
    asked = [i for i in range(60) if f"name of dog {i}?" in whole]
    assert asked and "name of dog" in end
    assert "old" not in marked and "sleeps" not in marked and "cat" not in whole
    assert sorted(marked.replace(" Its name is ", "").split(".")[:-1]) == sorted(
        f"Rex{i}" for i in asked
    )


def test_examples_of_the_labels_that_are_asked_for_are_marked(tmp_path, document, tokenizer):
    text, marked, end = compose("labels.csv", tmp_path, document, tokenizer, 0, 4000)
    asked = {label for label in ("red", "blue", "green") if f"of {label}" in end}
    assert 0 < len(asked) < 3
    assert {label for label in ("red", "blue", "green") if f"of {label}" in marked} == asked
    before = tokenizer.decode(text.tokens[: -text.asking])
    assert all(line not in before for line in end.split("\n") if "word" in line)


def test_the_turns_and_lines_that_answer_are_marked(tmp_path, document, tokenizer):
    _, marked, end = compose("meetings.jsonl", tmp_path, document, tokenizer, 0)
    assert marked == "A: point 20\nA: point 21\n" and "What of 20?" in end and "It is 20." in end
    _, marked, end = compose("babi.txt", tmp_path, document, tokenizer, 0)
    assert marked in (" Ann went home.", " Cy went out.")
    assert ("Ann" in marked) == ("Where is Ann?" in end)


@pytest.mark.parametrize("seed", range(4))
def test_a_chat_marks_what_the_user_tells_and_asks_for_it_at_the_end(
    tmp_path, document, tokenizer, seed
):
    (tmp_path / "squad.json").write_text(KINDS["squad.json"])
    chats = question_sources([tmp_path / "squad.json"], [document], chats=True)[1]
    text = chats.compose(tokenizer, 6000, np.random.default_rng(seed))
    whole, told = tokenizer.decode(text.tokens), text.tokens[: -text.asking]
    assert len(text.tokens) <= 6000 and whole.startswith("<|im_start|>user\n")
    rest = tokenizer.decode([t for i, t in enumerate(told) if i not in set(text.planted)])
    marked = tokenizer.decode([told[place] for place in text.planted])
    assert len(marked) > 200 and "long day" not in marked and "long day" in rest
    assert whole.rstrip().endswith(".<|im_end|>")


def test_kinds_take_turns_and_every_second_text_is_of_articles(tmp_path, document):
    for name, text in KINDS.items():
        (tmp_path / "all").mkdir(exist_ok=True)
        (tmp_path / "all" / name).write_text(text)
    assert len(question_files([tmp_path / "all"])) == len(KINDS)
    names = [type(s).__name__ for s in question_sources([tmp_path / "all"], [document])]
    assert names[::2] == ["Articles"] * (len(names) // 2)
    assert set(names[1::2]) == {"Labels", "Meetings", "Stories"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "{}"),
        ("a.json", '{"data": [{"paragraphs": []}]}'),
        ("a.json", '{"train": [["one", "label"]]}'),
        ("a.csv", "a,b\n1,2\n"),
        ("a.jsonl", '{"meeting_transcripts": []}\n'),
        ("a.jsonl", "\n"),
        ("a.txt", "Once upon a time\n"),
        ("a.txt", "1 Ann went home.\n"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_name(tmp_path, document, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(EdgeInfiniteError, match=name):
        question_sources([tmp_path / name], [document])
