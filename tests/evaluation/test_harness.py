"""Our model of lm-evaluation-harness equals the harness's own on texts that fit the cache."""

from __future__ import annotations

import pytest
from tiny_artifact import tiny_checkpoint
from tiny_longbench import tiny_longbench

pytest.importorskip("lm_eval")

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.harness import HarnessModel
from edgeinfinite.evaluation.longbench.cases import longbench_cases
from edgeinfinite.evaluation.longbench.folder import read_folder
from edgeinfinite.evaluation.longbench.options import LongBenchOptions
from edgeinfinite.evaluation.longbench.tasks import chosen_tasks
from edgeinfinite.evaluation.methods import Reader
from edgeinfinite.evaluation.options import Setting
from edgeinfinite.evaluation.questions.measure import measure_questions, planned
from edgeinfinite.evaluation.questions.prompts import Prompt
from edgeinfinite.evaluation.questions.systems import NO_QUESTION_METHODS, model_system
from edgeinfinite.evaluation.results import Results
from edgeinfinite.models.checkpoint.loading import load_backbone

SETTING = Setting(Geometry(32, 4, 400, policy="carry"))
SMALL = Setting(Geometry(8, 4, 16, policy="carry"))
WIDE = Setting(Geometry(8, 4, 48, policy="carry"))
"""Holds more than the observation window of SnapKV, and less than the texts."""
DOCUMENT = "A dog went home. A cat went away, far away. "


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return load_backbone(str(tiny_checkpoint(tmp_path_factory.mktemp("tiny") / "tiny")))


@pytest.fixture(scope="module")
def theirs(backbone) -> HFLM:
    return HFLM(pretrained=backbone.model, tokenizer=backbone.tokenizer, device="cpu", batch_size=1)


def ours(
    backbone, setting: Setting = SETTING, read: list[int] | None = None, right_answer=None
) -> HarnessModel:
    class Counting(Reader):
        def skip(self, tokens, progress=None):
            if read is not None:
                read.append(len(tokens))
            super().skip(tokens, progress)

    return HarnessModel(
        lambda tokens: Counting(backbone.model, "edgeinfinite", setting, tokens),
        backbone.tokenizer,
        frozenset({backbone.tokenizer.eos_token_id}),
        "tiny edgeinfinite",
        right_answer,
    )


def requests(kind: str, *arguments: tuple) -> list[Instance]:
    return [Instance(kind, {}, args, index) for index, args in enumerate(arguments)]


def test_log_likelihoods_equal_the_hf_models(backbone, theirs):
    asked = requests(
        "loglikelihood",
        (DOCUMENT + "Who went home? ", "A dog"),
        (DOCUMENT + "Who went home? ", "A cat"),
        (DOCUMENT + "Who went away?", " A cat"),
        ("Something else.", " Yes"),
        ("", "A text without a context"),
    )
    expected = theirs.loglikelihood(asked, disable_tqdm=True)
    got = ours(backbone).loglikelihood(asked, disable_tqdm=True)
    for (value, greedy), (wanted, best) in zip(got, expected, strict=True):
        assert value == pytest.approx(wanted, rel=1e-4) and greedy == best


def test_the_likeliest_continuation_is_marked_greedy(backbone):
    model = ours(backbone)
    context = model.tok_encode(DOCUMENT)
    reader = Reader(backbone.model, "edgeinfinite", SETTING, 400)
    reader.skip(context)
    likeliest = []
    for _ in range(3):
        likeliest.append(int(reader.logits.argmax()))
        reader.skip(likeliest[-1:])
    other = [*likeliest[:2], (likeliest[2] + 1) % 90]
    asked = [(("", ""), context, continuation) for continuation in (likeliest, other)]
    found = model._loglikelihood_tokens(asked, disable_tqdm=True)
    assert [greedy for _, greedy in found] == [True, False]
    assert found[0][0] > found[1][0]


def test_rolling_log_likelihoods_equal_the_hf_models(backbone, theirs):
    asked = requests("loglikelihood_rolling", (DOCUMENT,), ("Short.",))
    expected = theirs.loglikelihood_rolling(asked, disable_tqdm=True)
    assert ours(backbone).loglikelihood_rolling(asked, disable_tqdm=True) == pytest.approx(
        expected, rel=1e-4
    )


@pytest.mark.parametrize("until", [[], ["e"], ["\n\n", "a"]])
def test_answers_equal_the_hf_models(backbone, theirs, until):
    settings = {"until": until, "max_gen_toks": 12, "do_sample": False}
    asked = requests("generate_until", (DOCUMENT, settings), ("Something", settings))
    expected = theirs.generate_until(asked, disable_tqdm=True)
    assert ours(backbone).generate_until(asked, disable_tqdm=True) == expected


def test_requests_with_a_common_prefix_share_one_prefill(backbone):
    context = DOCUMENT * 3
    asked = requests(
        "loglikelihood",
        *((context + question, answer) for question in ("Who?", "When?") for answer in "xyz"),
    )
    read: list[int] = []
    shared = ours(backbone, SMALL, read).loglikelihood(asked, disable_tqdm=True)
    assert sum(read) < len(context) + 2 * 16
    for request, result in zip(asked, shared, strict=True):
        (alone,) = ours(backbone, SMALL).loglikelihood([request], disable_tqdm=True)
        assert result[0] == pytest.approx(alone[0], rel=1e-5)


def test_texts_longer_than_the_models_positions_are_read_in_one_piece(backbone):
    text = DOCUMENT * 20
    assert len(text) > backbone.model.config.max_position_embeddings
    model = ours(backbone, SMALL)
    (total,) = model.loglikelihood_rolling(
        requests("loglikelihood_rolling", (text,)), disable_tqdm=True
    )
    ((alone, _),) = model.loglikelihood(requests("loglikelihood", ("", text)), disable_tqdm=True)
    assert total == pytest.approx(alone, rel=1e-6)


def test_the_chat_template_is_the_tokenizers(backbone, theirs):
    history = [{"role": "user", "content": "Hi"}]
    assert ours(backbone).apply_chat_template(history) == theirs.apply_chat_template(history)
    assert ours(backbone).chat_template(True) == backbone.tokenizer.chat_template


def with_method(backbone, method: str, setting: Setting = SMALL) -> HarnessModel:
    system = model_system(backbone, setting, [method])
    return HarnessModel(
        lambda tokens: system.open(method, Prompt([], 0), tokens),
        system.tokenizer,
        system.stop_ids,
        f"tiny {method}",
        compresses=method in NO_QUESTION_METHODS,
    )


@pytest.mark.parametrize("method", ["edgeinfinite", *NO_QUESTION_METHODS])
def test_it_scores_a_row_as_evaluate_longbench_does(backbone, tmp_path, method):
    (data,) = read_folder(tiny_longbench(tmp_path / "data"), chosen_tasks(("trec",)))
    system = model_system(backbone, WIDE, [method])
    options, results = LongBenchOptions(), Results(None, "evaluate longbench", {})
    readings = planned(longbench_cases([data], system.tokenizer, options), system, options)
    measure_questions(readings, system, options.measures, results, lambda method, new: None)
    ((row,), (source,)) = results.rows, data.rows
    text = data.prompt.format(context=source.context, input=source.input)
    model = with_method(backbone, method, WIDE)
    assert len(text) > WIDE.geometry.capacity
    settings = {"until": [], "max_gen_toks": data.answer_length}
    asked = requests("generate_until", (text, settings))
    assert model.generate_until(asked, disable_tqdm=True) == [row["answer"]]
    answer = f" {source.answers[0]}"
    asked = requests("loglikelihood", (text, answer))
    ((total, _),) = model.loglikelihood(asked, disable_tqdm=True)
    assert -total / len(answer) == pytest.approx(row["answer_nats"], rel=1e-6)


@pytest.mark.parametrize("method", NO_QUESTION_METHODS)
def test_prompts_with_a_common_prefix_are_compressed_each_at_its_own_end(backbone, method):
    context = DOCUMENT * 3
    asked = requests(
        "loglikelihood",
        *((context + question, answer) for question in ("Who?", "Who? When?") for answer in "xy"),
    )
    shared = with_method(backbone, method, WIDE).loglikelihood(asked, disable_tqdm=True)
    assert len({round(total, 4) for total, _ in shared}) == len(asked)
    for request, result in zip(asked, shared, strict=True):
        model = with_method(backbone, method, WIDE)
        (alone,) = model.loglikelihood([request], disable_tqdm=True)
        assert result[0] == pytest.approx(alone[0], rel=1e-5)


def test_what_compresses_prompts_has_no_rolling_likelihood(backbone):
    asked = requests("loglikelihood_rolling", (DOCUMENT,))
    with pytest.raises(EdgeInfiniteError, match="no prompts; choose full"):
        with_method(backbone, "snapkv").loglikelihood_rolling(asked, disable_tqdm=True)


def test_right_answers_are_measured_beside_the_generated_ones_and_change_none(backbone):
    settings = {"until": [], "max_gen_toks": 6}
    places = ("home", "away", "there")
    asked = [
        Instance("generate_until", {"max_length": 64, "wanted": f" {place}"},
                 (DOCUMENT * 3 + f"Where {place[0]}?", settings), index, ("task", index, 1))
        for index, place in enumerate(places)
    ]  # fmt: skip
    model = ours(backbone, SMALL, right_answer=lambda document: document["wanted"])
    plain = ours(backbone, SMALL)
    expected = plain.generate_until(asked, disable_tqdm=True)
    assert model.generate_until(asked, disable_tqdm=True) == expected
    wanted = requests("loglikelihood", *((r.args[0], r.doc["wanted"]) for r in asked))
    nats = [
        -total / len(request.args[1])  # a byte, a token
        for (total, _), request in zip(
            plain.loglikelihood(wanted, disable_tqdm=True), wanted, strict=True
        )
    ]
    (row,) = model.gold_rows()
    assert (row["task"], row["metric"]) == ("task", "64_nats") and row["stderr"] > 0
    assert row["value"] == pytest.approx(sum(nats) / 3, rel=1e-5)
    assert plain.gold_rows() == []


def test_sampling_is_refused(backbone):
    settings = {"do_sample": True, "temperature": 0.7}
    with pytest.raises(EdgeInfiniteError, match="greedy"):
        ours(backbone).generate_until(requests("generate_until", ("Hi", settings)))
