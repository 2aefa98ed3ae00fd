"""A user's copy of LongBench is read, or refused in one line."""

from __future__ import annotations

import json

import pytest
from tiny_longbench import PROMPTS, ROWS, row, tiny_longbench

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.longbench.folder import prompts_digest, read_folder
from edgeinfinite.evaluation.longbench.tasks import TASKS, chosen_tasks


def test_the_folder_gives_prompts_lengths_and_rows_of_the_tasks_it_has(tmp_path):
    folder = tiny_longbench(tmp_path / "longbench")
    found = {data.task.name: data for data in read_folder(folder, chosen_tasks(()))}
    assert list(found) == [name for name in TASKS if name in ROWS]
    assert found["qasper"].answer_length == 8 and found["qasper"].prompt == PROMPTS["qasper"]
    assert [r.row for r in found["qasper"].rows] == ["q0", "q1"]
    assert found["trec"].rows[0].classes == ("Person", "Date")
    assert found["qasper"].rows[0].answers == ("A dog", "the dog")


def test_a_folder_laid_out_like_longbenchs_repository_is_read(tmp_path):
    folder = tiny_longbench(tmp_path / "longbench")
    plain = read_folder(folder, chosen_tasks(())), prompts_digest(folder)
    (folder / "config").mkdir()
    for file in list(folder.glob("*.json")):
        file.rename(folder / "config" / file.name)
    for file in list((folder / "data").iterdir()):
        file.rename(folder / file.name)
    assert (read_folder(folder, chosen_tasks(())), prompts_digest(folder)) == plain


def test_a_language_selects_its_tasks():
    assert {task.name for task in chosen_tasks(("code",))} == {"lcc", "repobench-p"}
    assert len(chosen_tasks(("zh",))) == 5 and len(chosen_tasks(("en",))) == 14
    assert len(chosen_tasks(())) == 21
    with pytest.raises(EdgeInfiniteError, match="unknown task 'quasar'"):
        chosen_tasks(("quasar",))


def test_a_row_without_an_id_gets_its_place_as_name(tmp_path):
    rows = [row("", "text", "what?", "this"), row("", "text", "who?", "that")]
    folder = tiny_longbench(tmp_path / "longbench", qasper=rows)
    (data,) = read_folder(folder, chosen_tasks(("qasper",)))
    assert [r.row for r in data.rows] == ["0", "1"]


def broken(change: str) -> str:
    fields = row("q", "text", "what?", "this")
    if change == "answers":
        return json.dumps(fields | {"answers": "this"})
    if change == "no answers":
        return json.dumps(fields | {"answers": []})
    if change == "context":
        del fields["context"]
        return json.dumps(fields)
    return {"json": "{", "list": "[1, 2]"}[change]


@pytest.mark.parametrize("change", ["answers", "no answers", "context", "json", "list"])
def test_an_invalid_line_is_named(tmp_path, change):
    folder = tiny_longbench(tmp_path / "longbench")
    file = folder / "data" / "qasper.jsonl"
    file.write_text(file.read_text() + broken(change) + "\n")
    with pytest.raises(EdgeInfiniteError, match=r"qasper\.jsonl, line 3: not a row"):
        read_folder(folder, chosen_tasks(("qasper",)))


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("dataset2prompt.json", None, "has no dataset2prompt.json"),
        ("dataset2maxlen.json", "[]", "isn't a JSON object"),
        ("dataset2maxlen.json", "{", "isn't JSON"),
        ("dataset2maxlen.json", '{"qasper": 0}', "no length for qasper"),
        ("dataset2prompt.json", '{"qasper": "no place"}', "no prompt for qasper"),
        ("data/qasper.jsonl", None, "no rows"),
        ("data/qasper.jsonl", "\n\n", "no rows"),
    ],
)
def test_missing_parts_are_named(tmp_path, file, content, says):
    folder = tiny_longbench(tmp_path / "longbench")
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_text(content)
    with pytest.raises(EdgeInfiniteError, match=says):
        read_folder(folder, chosen_tasks(("qasper",)))
