"""Generation on a tiny random Llama, against transformers' own `generate`."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
)

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import check_writable
from edgeinfinite.process_memory import peak_rss_bytes
from edgeinfinite.rows_file import write_rows
from edgeinfinite.runtime_py.answer.generation import Generation, interruptible
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.version import __version__
from tiny import attached, random_tokens, tiny_llama

GREEDY = SamplingOptions()
ROW = """text token_ids prompt_tokens new_tokens ttft_s prefill_tokens_per_s decode_tokens_per_s
    median_token_s slowest_token_s compressions state_bytes peak_rss_bytes engine artifact
    finish logprobs"""
SMALL = Geometry(segment_length=8, sink_length=2, window_length=3)


@pytest.fixture(scope="module")
def engine() -> TorchEngine:
    """Compresses after every 8 tokens."""
    return TorchEngine(attached(SMALL))


def _generation(
    session: Session,
    prompt: list[int],
    *,
    stop_ids: tuple[int, ...] = (),
    new: int = 12,
    options: SamplingOptions = GREEDY,
    **hooks: object,
) -> Generation:
    return Generation(
        session,
        prompt,
        sampler=Sampler(options),
        stop_ids=stop_ids,
        max_new_tokens=new,
        **hooks,  # type: ignore[arg-type]
    )


def test_greedy_tokens_are_those_of_transformers() -> None:
    prompt = random_tokens(20)
    expected = tiny_llama().generate(
        torch.tensor([prompt]), max_new_tokens=15, do_sample=False, eos_token_id=None
    )
    engine = TorchEngine(attached(Geometry(64, 4, 8), open_gates=False))
    assert list(_generation(Session(engine), prompt, new=15)) == expected[0, 20:].tolist()


def test_penalised_tokens_are_those_that_transformers_takes_without_counting_the_prompt() -> None:
    prompt = random_tokens(40)
    penalty = RepetitionPenaltyLogitsProcessor(1.5, prompt_ignore_length=len(prompt))
    expected = tiny_llama().generate(
        torch.tensor([prompt]),
        max_new_tokens=15,
        do_sample=False,
        eos_token_id=None,
        logits_processor=LogitsProcessorList([SequenceBiasLogitsProcessor([[[7], 2.5]]), penalty]),
    )
    engine = TorchEngine(attached(Geometry(64, 4, 8), open_gates=False))
    options = SamplingOptions(repetition_penalty=1.5, logit_bias={7: 2.5})
    answer = list(_generation(Session(engine), prompt, new=15, options=options))
    assert answer == expected[0, 40:].tolist()
    assert answer != list(_generation(Session(engine), prompt, new=15))


@pytest.mark.parametrize("prompt_length", [3, 12, 40])
@pytest.mark.parametrize("end", ["length", "stop", "cancelled"])
def test_the_session_has_read_what_was_handed_out_and_no_more(
    engine: TorchEngine, prompt_length: int, end: str
) -> None:
    prompt = random_tokens(prompt_length)
    free = list(_generation(Session(engine), prompt))
    session = Session(engine)
    generation = _generation(
        session,
        prompt,
        stop_ids=(free[5],) if end == "stop" else (),
        cancelled=lambda: end == "cancelled" and len(generation.token_ids) == 4,
    )
    tokens = list(generation)

    assert generation.finish == end
    length = {"length": 12, "stop": free.index(free[5]), "cancelled": 4}[end]
    assert tokens == generation.token_ids == free[:length]
    whole = Session(engine)
    whole.append(prompt + tokens)
    assert session.tokens_read == whole.tokens_read == prompt_length + length
    turn = random_tokens(3, seed=1)
    np.testing.assert_allclose(session.append(turn), whole.append(turn), atol=1e-4)


def test_an_answer_that_stops_at_once_is_empty(engine: TorchEngine) -> None:
    prompt = random_tokens(10)
    first = next(iter(_generation(Session(engine), prompt)))
    generation = _generation(Session(engine), prompt, stop_ids=(first,))
    assert list(generation) == []
    row = generation.statistics(text="", engine="torch", artifact="").to_row()
    assert row["ttft_s"] > 0
    assert (row["new_tokens"], row["decode_tokens_per_s"], row["slowest_token_s"]) == (
        0,
        None,
        None,
    )


def test_a_prompt_stopped_halfway_is_read_by_the_next_answer(engine: TorchEngine) -> None:
    prompt, turn = random_tokens(30), random_tokens(5, seed=1)
    session = Session(engine, chunk_length=4)
    read: list[int] = []
    generation = _generation(
        session, prompt, cancelled=lambda: sum(read) >= 12, progress=read.append
    )
    assert list(generation) == []
    assert generation.finish == "cancelled"
    assert 12 <= session.tokens_read < 30
    stopped = generation.statistics(text="", engine="torch", artifact="")
    assert (stopped.prompt_tokens, stopped.ttft_s) == (session.tokens_read, None)

    following = _generation(session, turn)
    assert list(following) == list(_generation(Session(engine), prompt + turn))
    assert following.statistics(text="", engine="torch", artifact="").prompt_tokens == 35 - sum(
        read
    )


def test_progress_counts_every_prompt_token_once(engine: TorchEngine) -> None:
    read: list[int] = []
    list(_generation(Session(engine, chunk_length=4), random_tokens(45), progress=read.append))
    assert sum(read) == 45
    assert len(read) > 10


def test_a_seed_fixes_the_answer_and_another_one_changes_it(engine: TorchEngine) -> None:
    def answer(seed: int) -> list[int]:
        options = SamplingOptions(temperature=1.5, seed=seed)
        return list(_generation(Session(engine), random_tokens(9), options=options))

    assert answer(1) == answer(1) != answer(2)


def test_statistics_say_what_happened(engine: TorchEngine) -> None:
    session = Session(engine)
    generation = _generation(session, random_tokens(40), new=10)
    list(generation)
    figures = generation.statistics(text="text", engine="torch", artifact="folder")
    row = figures.to_row()
    assert list(row) == ROW.split()
    assert (row["text"], row["engine"], row["artifact"]) == ("text", "torch", "folder")
    assert (row["prompt_tokens"], row["new_tokens"], len(row["token_ids"])) == (40, 10, 10)
    # 50 tokens: each compression takes 8 out of the cache, and at most S + N + W - 1 = 12 stay.
    assert row["compressions"] == 5
    assert row["state_bytes"] == session.state_bytes
    assert 0 < row["median_token_s"] <= row["slowest_token_s"]
    assert 1 / row["slowest_token_s"] <= row["decode_tokens_per_s"]
    assert row["prefill_tokens_per_s"] > 40 / row["ttft_s"]
    table = figures.table()
    assert "40 tokens" in table and "compressions      5" in table


def test_time_that_the_consumer_takes_is_not_counted(engine: TorchEngine) -> None:
    generation = _generation(Session(engine), random_tokens(5), new=2)
    for _ in generation:
        time.sleep(1)
    figures = generation.statistics(text="", engine="torch", artifact="")
    assert figures.slowest_token_s is not None and figures.slowest_token_s < 1


@pytest.mark.parametrize(
    ("prompt", "new", "message"),
    [([], 5, "prompt is empty"), ([3], 0, "max-new-tokens is 0"), ([3], -1, "max-new-tokens")],
)
def test_nothing_to_read_or_to_write_is_refused(
    engine: TorchEngine, prompt: list[int], new: int, message: str
) -> None:
    with pytest.raises(EdgeInfiniteError, match=message):
        _generation(Session(engine), prompt, new=new)


def test_a_model_that_computes_nan_is_reported() -> None:
    model = attached(SMALL)
    with torch.no_grad():
        model.model.norm.weight.fill_(torch.nan)  # type: ignore[union-attr, operator]
    with pytest.raises(EdgeInfiniteError, match="logits are not finite"):
        list(_generation(Session(TorchEngine(model)), random_tokens(5)))


def test_the_first_ctrl_c_only_asks_and_the_second_one_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible() as interrupted:
        assert not interrupted()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted()
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("the second one must end the program")
    assert signal.getsignal(signal.SIGINT) is before


def test_rows_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_rows(path, "generate", [{"text": "é", "value": None}])
    written = path.read_text(encoding="utf-8")
    document = json.loads(written)
    assert list(document) == ["command", "version", "machine", "rows"]
    assert (document["command"], document["version"]) == ("generate", __version__)
    assert document["rows"] == [{"text": "é", "value": None}]
    assert document["machine"]["cores"] == os.cpu_count()

    with pytest.raises(UnicodeEncodeError):  # fails in the middle of writing
        write_rows(path, "generate", [{"text": "\ud800"}])
    assert path.read_text(encoding="utf-8") == written
    assert list(tmp_path.iterdir()) == [path]


def test_where_a_file_can_not_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    check_writable(None)
    check_writable(tmp_path / "new.json")
    with pytest.raises(EdgeInfiniteError, match="there is no folder"):
        check_writable(tmp_path / "nowhere" / "new.json")
    with pytest.raises(EdgeInfiniteError, match="is a folder"):
        check_writable(tmp_path)


def test_peak_memory_is_in_bytes() -> None:
    block = np.ones(30_000_000 // 8)
    peak = peak_rss_bytes()
    assert peak is not None and block.nbytes < peak < 1e11
