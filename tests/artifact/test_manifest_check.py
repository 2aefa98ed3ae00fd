"""An impossible manifest is refused in one line, before any file that it names is opened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
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
    (_cache(shape=[1, 10**12, 10**12, 8]), "room for|would take"),
    (_cache(shape=[1, -1, 44, 8]), "has the shape"),
    (_cache(shape=[1]), "axes"),
    (lambda m: m["geometry"].update(segment_length=33), "the geometry says"),
    (lambda m: m["state"].append(m["state"][0]), "the same name"),
    (lambda m: m["backbone"].update(layers=10**9), "layers"),
    (lambda m: m["backbone"].update(vocabulary=0), "0 vocabulary"),
    (lambda m: m.update(schema_version=-1), "schema version -1"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=[says for _, says in CHANGES])
def test_an_impossible_manifest_is_refused(
    manifest: str, tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    fields = json.loads(manifest)
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
