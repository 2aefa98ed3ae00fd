"""Long texts are read with products of float32 where that pays, and weights are packed once."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from tiny_artifact import VOCABULARY, tiny_artifact

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines import onnx_engine, reading_graph
from edgeinfinite.runtime_py.engines.float_products import pays_here, with_float_products
from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine
from edgeinfinite.runtime_py.server.shared_engine import SharedEngine
from edgeinfinite.runtime_py.session.session import Cancelled, Session

TOKENS = np.random.default_rng(0).integers(3, VOCABULARY, 100).tolist()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("int4") / "artifact"
    return tiny_artifact(folder, "--quantize", "int4", "--policy", "carry")


@pytest.fixture
def artifact(made: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(reading_graph, "LONG", 64)
    monkeypatch.setattr(onnx_engine, "pays_here", lambda: True)
    return made


def opened(folder: Path, *, own_decode: bool = False) -> OnnxEngine:
    return OnnxEngine(folder, load_manifest(folder), threads=1, own_decode=own_decode)


def levels(model: bytes) -> list[tuple[int, int]]:
    """Bits and accuracy level of every product with packed weights, graphs within graphs too."""

    def of(graph: onnx.GraphProto) -> Iterator[tuple[int, int]]:
        for node in graph.node:
            fields = {a.name: a for a in node.attribute}
            if node.op_type == "MatMulNBits":
                yield fields["bits"].i, fields["accuracy_level"].i
            for field in fields.values():
                yield from of(field.g)

    return list(of(onnx.load_from_string(model).graph))


def test_products_with_four_bits_change_their_level_and_nothing_else(made: Path) -> None:
    file = (made / "prefill_segment.onnx").read_bytes()
    changed = with_float_products(file)
    assert changed is not None and len(changed) == len(file)
    before, after = levels(file), levels(changed)
    assert {4, 8} == {bits for bits, _ in before}  # the head has 8 bits
    assert before == [(bits, 4) for bits, _ in before]
    assert after == [(bits, 1 if bits == 4 else 4) for bits, _ in before]
    assert with_float_products(changed) is None


def test_a_long_text_is_read_with_other_rounding_and_a_short_one_as_ever(artifact: Path) -> None:
    exact = Session(opened(artifact, own_decode=True))
    short, long = Session(opened(artifact)), Session(opened(artifact))
    read = exact.append(TOKENS)
    for start in range(0, len(TOKENS), 50):
        shortly = short.append(TOKENS[start : start + 50])
    at_once = long.append(TOKENS)
    np.testing.assert_allclose(shortly, read, atol=1e-5)
    assert not np.array_equal(at_once, shortly)
    np.testing.assert_allclose(at_once, read, atol=0.05 * np.abs(read).max())
    assert long.compressions == exact.compressions > 1


def test_one_graph_at_a_time_is_open_unless_another_text_needs_the_other(artifact: Path) -> None:
    engine = opened(artifact)
    shared = SharedEngine(engine)
    places = engine._prefill
    one, other = Session(shared), Session(shared)
    seen = []

    def progress(_: int) -> None:
        seen.append((places._graph is None, places._reader is None))
        if len(seen) == 2:
            other.append(TOKENS[:5])  # another conversation, meanwhile

    one.append(TOKENS, progress=progress)
    Session(shared).append(TOKENS)  # whose end opens the other graph
    assert seen[:3] == [(True, False), (True, False), (False, False)]
    assert (places._graph is None, places._reader is None) == (False, True)
    alone = Session(opened(artifact)).append(TOKENS[:5])
    np.testing.assert_array_equal(Session(engine).append(TOKENS[:5]), alone)


@pytest.mark.parametrize("length", range(90, 100))
def test_a_single_token_of_a_long_text_opens_no_other_graph(artifact: Path, length: int) -> None:
    """Two graphs with their weights would be held: 350 MB more for Gemma 3 270M."""
    engine = opened(artifact)
    session, seen = Session(engine), []
    session.append(TOKENS[:length], progress=lambda _: seen.append(engine._prefill._graph is None))
    assert all(seen) and session.tokens_read == length


def test_the_reader_is_gone_before_the_other_graph_is_opened_again(artifact: Path) -> None:
    """Whoever still held it would have both in memory: 160 MB more for SmolLM2-135M."""
    engine = opened(artifact)
    places, readers, alive = engine._prefill, [], []
    opens, opens_reader = places._opens, places._opens_reader
    assert opens_reader is not None

    def reader() -> object:
        made = opens_reader()
        readers.append(weakref.ref(made))
        return made

    def graph() -> object:
        alive.extend(one() for one in readers)
        return opens()

    places._opens, places._opens_reader = graph, reader
    for session in (Session(engine), Session(SharedEngine(engine))):
        session.append(TOKENS)
    assert alive == [None, None, None]


def test_few_products_with_4_bits_are_not_worth_another_graph(artifact: Path) -> None:
    file = (artifact / "prefill_segment.onnx").read_bytes()
    four, eight = (b"\x0a\x04bits\x18" + bits for bits in (b"\x04", b"\x08"))
    most = (file.count(four) - file.count(eight)) // 2
    assert with_float_products(file.replace(four, eight, most)) is not None
    assert with_float_products(file.replace(four, eight, most + 1)) is None


def test_a_cancelled_reading_closes_the_reader_and_goes_on(artifact: Path) -> None:
    engine = opened(artifact)
    session, calls = Session(engine), iter([False, False, True])
    with pytest.raises(Cancelled):
        session.append(TOKENS, cancelled=lambda: next(calls))
    assert engine._prefill._reader is engine._prefill._graph is None and session.unread
    session.append([])
    assert session.tokens_read == len(TOKENS)


def test_files_that_were_replaced_meanwhile_are_not_taken_for_the_old_ones(
    artifact: Path, tmp_path: Path
) -> None:
    folder = tiny_artifact(tmp_path / "own", "--quantize", "int4", "--policy", "carry")
    engine = opened(folder)
    session = Session(engine)

    def replaced(_: int) -> None:
        os.utime(folder / "weights.data", (1, 1))

    session.append(TOKENS, progress=replaced)  # what is open stays as it was
    with pytest.raises(EdgeInfiniteError, match="has changed since it was opened; open it again"):
        session.append([5])
    assert list(session.unread) == [5]


def test_without_avx_512_or_with_all_graphs_nothing_changes(
    artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opened(artifact, own_decode=True)._prefill._opens_reader is None
    monkeypatch.setattr(onnx_engine, "pays_here", lambda: False)
    assert opened(artifact)._prefill._opens_reader is None


@pytest.mark.parametrize(
    ("said", "pays"),
    [
        ("flags\t: fpu avx2 avx512f avx512dq\n", True),
        ("flags\t: fpu avx2 fma\n", False),
        ("", False),
    ],
)
def test_the_cpu_is_asked(tmp_path: Path, said: str, pays: bool) -> None:
    info = tmp_path / "cpuinfo"
    assert not pays_here(info)
    info.write_text(said, encoding="utf-8")
    assert pays_here(info) == pays
