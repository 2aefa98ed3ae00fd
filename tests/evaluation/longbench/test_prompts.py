"""Prompts are LongBench's: template, cut in the middle, chat template where it has one."""

from __future__ import annotations

import pytest
from tiny_artifact import tiny_checkpoint
from tiny_longbench import ROWS, tiny_longbench
from transformers import AutoTokenizer

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.longbench.cases import prompts_of
from edgeinfinite.evaluation.longbench.folder import TaskData, TaskRow, read_folder
from edgeinfinite.evaluation.longbench.tasks import chosen_tasks


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return AutoTokenizer.from_pretrained(tiny_checkpoint(tmp_path_factory.mktemp("tiny") / "tiny"))


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> dict[str, TaskData]:
    folder = tiny_longbench(tmp_path_factory.mktemp("longbench") / "data")
    return {one.task.name: one for one in read_folder(folder, chosen_tasks(()))}


def text_of(data: TaskData, tokenizer, row: TaskRow | None = None, **more) -> str:
    prompt = prompts_of(data, tokenizer).build(row or data.rows[0], **more)
    return tokenizer.decode(prompt.tokens)


def test_questions_go_through_the_chat_template(data, tokenizer):
    context = ROWS["qasper"][0]["context"]
    message = f"Read.\n\n{context}\n\nQuestion: Who went?\nAnswer:"
    assert text_of(data["qasper"], tokenizer) == (
        f"<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("task", ["trec", "samsum", "lcc"])
def test_examples_and_code_get_no_chat_template(data, tokenizer, task):
    text = text_of(data[task], tokenizer)
    assert "<|im_start|>user" not in text
    assert text.endswith(("Type:", "Summary: ", "Next line of code:\n"))


def test_a_long_prompt_is_cut_in_the_middle_before_the_chat_template(data, tokenizer):
    whole = prompts_of(data["qasper"], tokenizer).build(data["qasper"].rows[0])
    for longest in (len(whole.tokens) - 1, 150, 121, 90):
        prompt = prompts_of(data["qasper"], tokenizer).build(data["qasper"].rows[0], longest)
        assert longest - 2 <= len(prompt.tokens) <= longest
        text = tokenizer.decode(prompt.tokens)
        assert text.startswith("<|im_start|>user\nRead.")
        assert text.endswith("Answer:<|im_end|>\n<|im_start|>assistant\n")
        message = text.removeprefix("<|im_start|>user\n").partition("<|im_end|>")[0]
        original = tokenizer.decode(whole.tokens).removeprefix("<|im_start|>user\n")
        original = original.partition("<|im_end|>")[0]
        half = len(message) // 2  # one byte, one token
        assert message == original[:half] + original[-half:]
    same = prompts_of(data["qasper"], tokenizer).build(data["qasper"].rows[0], len(whole.tokens))
    assert same == whole
    with pytest.raises(EdgeInfiniteError, match="--cut-length"):
        prompts_of(data["qasper"], tokenizer).build(data["qasper"].rows[0], 20)


@pytest.mark.parametrize("task", ROWS)
def test_the_question_begins_where_the_context_ends(data, tokenizer, task):
    row = data[task].rows[0]
    prompt = prompts_of(data[task], tokenizer).build(row)
    before = tokenizer.decode(prompt.tokens[: prompt.question])
    after = tokenizer.decode(prompt.tokens[prompt.question :])
    assert before.endswith(row.context)
    assert after.strip().startswith(("Question: Who", "Dialogue: B", "问题", "Next line"))


def test_an_empty_context_leaves_the_question(data, tokenizer):
    text = text_of(data["qasper"], tokenizer, empty=True)
    assert "went home" not in text and "Question: Who went?\nAnswer:" in text


def test_braces_in_a_context_are_text(data, tokenizer):
    row = TaskRow("r", "{input} and {context} {", "Who?", ("x",))
    text = text_of(data["qasper"], tokenizer, row)
    assert "{input} and {context} {\n\nQuestion: Who?" in text


def test_an_answer_has_the_form_of_the_examples(data, tokenizer):
    def answer(task: str, text: str) -> str:
        prompts = prompts_of(data[task], tokenizer)
        return tokenizer.decode(prompts.answer(data[task].rows[0], text))

    assert answer("trec", "Date") == " Date"  # after `Type:`
    assert answer("samsum", "Yo") == "Yo"  # after `Summary: `
    assert answer("lcc", "  c = 3") == "  c = 3"
    assert answer("qasper", "A dog") == "A dog"  # at the start of the assistant's turn
    assert answer("qasper", "") == ""


def test_a_base_model_gets_questions_without_a_chat_template(data, tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    base = AutoTokenizer.from_pretrained(tmp_path)
    base.chat_template = None
    assert text_of(data["qasper"], base).endswith("Who went?\nAnswer:")
    prompts = prompts_of(data["qasper"], base)
    assert base.decode(prompts.answer(data["qasper"].rows[0], "A dog")) == " A dog"
