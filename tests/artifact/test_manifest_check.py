"""An impossible manifest is refused in one line, before any file that it names is opened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.errors import EdgeInfiniteError


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    artifact = tiny_artifact(tmp_path_factory.mktemp("manifest") / "artifact")
    read_manifest(artifact)
    return (artifact / "manifest.json").read_text(encoding="utf-8")


def _graph(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda m: m["graphs"]["decode_step"].update(fields)


def _cache(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda m: next(s for s in m["state"] if s["role"] == "k_cache").update(fields)


def _output(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda m: m["graphs"]["decode_step"]["outputs"][-1].update(fields)


def _input_named(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    return next(s for s in manifest["graphs"]["decode_step"]["inputs"] if s["name"] == name)


def _input(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda m: _input_named(m, "k_cache_0").update(fields)


def _counter(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda m: next(s for s in m["state"] if s["name"] == "length").update(fields)


def _grow(manifest: dict[str, Any], window: int) -> None:
    """Geometry and caches agree, on a terabyte."""
    geometry = manifest["geometry"]
    geometry["window_length"] = window
    capacity = geometry["sink_length"] + geometry["segment_length"] + window
    graphs = manifest["graphs"].values()
    for specs in [manifest["state"], *(g[k] for g in graphs for k in ("inputs", "outputs"))]:
        for spec in specs:
            if spec["dims"] == "B K C D":
                spec["shape"][2] = capacity


def _lose(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda m: m.update(state=[s for s in m["state"] if s["name"] != name])


CHANGES: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (_graph(file="/etc/passwd"), "isn't one of the artifact's files"),
    (_graph(file="../weights.data"), "isn't one of the artifact's files"),
    (_graph(file="other.onnx"), "isn't one of the artifact's files"),
    (lambda m: m["files"].update({"../a": m["files"]["weights.data"]}), "outside the artifact"),
    (lambda m: m.update(state=[]), "no state tensor"),
    (_lose("length"), "no state tensor 'length'"),
    (_lose("v_cache_0"), "one K and one V cache"),
    (_cache(dtype="float3"), "unknown type 'float3'"),
    (_cache(shape=[1, 2, 10**12, 8]), "has room for 1000000000000 tokens"),
    (_cache(shape=[1, -1, 44, 8]), "has the shape"),
    (lambda m: _grow(m, 10**12), "would take"),
    (_cache(shape=[1]), "axes"),
    (lambda m: m["geometry"].update(segment_length=33), "the geometry says"),
    (lambda m: m["state"].append(m["state"][0]), "the same name"),
    (lambda m: m["backbone"].update(layers=10**9), "layers"),
    (lambda m: m["backbone"].update(vocabulary=0), "0 vocabulary"),
    (lambda m: m.update(schema_version=-1), "schema version -1"),
    (lambda m: m["files"].update({"..": m["files"]["weights.data"]}), "file name '..' points"),
    (lambda m: m["files"].update({"C:a": m["files"]["weights.data"]}), "file name 'C:a' points"),
    (lambda m: m["files"]["weights.data"].update(size=-5), "weights.data has -5 bytes"),
    (lambda m: m["graphs"].pop("prefill_segment"), "graph prefill_segment is missing"),
    (_graph(inputs=[]), "doesn't turn tokens into logits"),
    (_input(name="k_cache_9"), "input k_cache_9 isn't a state tensor"),
    (_input(layer=7), "is of layer 7"),
    (_input(shape=[1, 2, "U", "U"]), "the size 'U' on the axis D"),
    (_output(alias="v_cache_9"), "goes to v_cache_9, which isn't a state tensor"),
    (_output(dtype="float16"), "hasn't the shape and type of v_cache_1"),
    (_output(shape=[1, 2, "U", 8]), "has no fixed shape"),
    (_cache(name="other"), "has the role k_cache of layer 0"),
    (_cache(dtype="float16"), "several types"),
    (_cache(shape=[1, 3, 44, 8]), "has 3 on the axis K, it must be 2"),
    (_cache(dims="B Q C D"), "has an axis 'Q'"),
    (_counter(shape=[9]), "has 9 on the axis L, it must be 2"),
    (_counter(dtype="int32"), "can't be of the type int32"),
    (lambda m: m["backbone"].update(kv_heads=3), "4 query heads can't share 3 KV heads"),
    (lambda m: m["backbone"].update(head_dim=10**30), "head_dim"),
    (lambda m: m["graphs"].pop("compress_memory"), "graph compress_memory is missing"),
    (lambda m: m["geometry"].update(segment_length=-1), "segment length is -1"),
    (lambda m: m["geometry"].update(window_length=10**20), "the geometry says"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=[says for _, says in CHANGES])
def test_an_impossible_manifest_is_refused(
    manifest: str, tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    fields = json.loads(manifest)
    del fields["own_sha256"]
    change(fields)
    (tmp_path / "manifest.json").write_text(json.dumps(fields))
    with pytest.raises(EdgeInfiniteError, match=message) as caught:
        read_manifest(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema_version": 2, "schema_version": 2}', "'schema_version' stands in it twice"),
        ("[" * 100_000, "nested too deeply|can't be read"),
        ('{"details":' * 100_000, "nested too deeply|can't be read"),
        ("\x00", "can't be read"),
    ],
)
def test_pathological_json_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(EdgeInfiniteError, match=message):
        read_manifest(tmp_path)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_every_flipped_bit_of_a_manifest_is_found(manifest: str, data: st.DataObject) -> None:
    text = bytearray(manifest.encode())
    bit = data.draw(st.integers(0, 8 * len(text) - 1))
    text[bit // 8] ^= 1 << bit % 8
    with TemporaryDirectory() as folder:
        (Path(folder) / "manifest.json").write_bytes(text)
        if b'"own_sha256": "' not in text:  # the name itself was hit
            return
        with pytest.raises(EdgeInfiniteError) as caught:
            read_manifest(Path(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("stated", ["", "0" * 64, "a" * 63, "e" * 10_000])
def test_a_wrong_checksum_of_its_own_is_refused(manifest: str, tmp_path: Path, stated: str) -> None:
    fields = json.loads(manifest)
    fields["own_sha256"] = stated
    (tmp_path / "manifest.json").write_text(json.dumps(fields))
    with pytest.raises(EdgeInfiniteError, match="own_sha256"):
        read_manifest(tmp_path)


def test_a_manifest_without_its_own_checksum_is_read(manifest: str, tmp_path: Path) -> None:
    fields = json.loads(manifest)
    del fields["own_sha256"]
    (tmp_path / "manifest.json").write_text(json.dumps(fields))
    assert read_manifest(tmp_path).files
