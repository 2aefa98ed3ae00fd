"""The manifest: what `export` writes, every runtime reads (docs/develop/architecture.md).

`manifest.json` is these dataclasses as JSON. The Android runtime reads the same file, so a change
that an older reader would misread needs a new `SCHEMA_VERSION`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest_check import check_json, check_manifest, is_plain_name
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.artifact.slots_by_head import refuse_slots_by_head
from edgeinfinite.artifact.socs import QNN_HTP, soc_named
from edgeinfinite.artifact.tensors import GraphSpec, Heads, TensorSpec
from edgeinfinite.errors import EdgeInfiniteError

SCHEMA_VERSION = 2
MANIFEST_FILE = "manifest.json"
GATE_FILE = "gate.safetensors"
SCORER_FILE = "scorer.safetensors"
CACHE_SCALES_FILE = "cache_scales.safetensors"
MODEL_CARD = "README.md"
"""Names inside an artifact."""

_BLANK = "0" * 64
"""Stands for a manifest's own sha256 while that is computed."""


@dataclass(frozen=True)
class FileEntry:
    """A file of the artifact: sha256 in hexadecimal, size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class BackboneInfo:
    """The checkpoint an artifact was made from.

    Args:
        layers: those that hold a cache: neither such as don't attend nor such as read the cache of
            an earlier one.
        kv_heads, head_dim: K and D, the largest of any layer where they differ.
        hidden_size: columns of the embedding; None in artifacts that don't say it.
        heads: K and D of every layer; left out where they are the same in all.
    """

    name: str
    architecture: str
    layers: int
    query_heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    max_positions: int
    parameters: int
    weights_sha256: str
    hidden_size: int | None = None
    heads: tuple[Heads, ...] | UnsetType = UNSET

    def heads_of(self, layer: int | None) -> Heads:
        """K and D of a layer, or of what all layers share."""
        if layer is None or isinstance(self.heads, UnsetType):
            return Heads(self.kv_heads, self.head_dim)
        return self.heads[layer]


@dataclass(frozen=True)
class GateInfo:
    """The memory gate: where it came from, its rank r, parameters, sha256 of tensors and form.

    Args:
        feature_map, opening: its form (`models.configuration`).
    """

    source: str
    rank: int
    parameters: int
    sha256: str
    feature_map: str = "elu"
    opening: str = "constant"


@dataclass(frozen=True)
class ScorerInfo:
    """The retention scorer that fills the recall slots.

    Args:
        source: where it came from: a file's name, or `untrained`.
        parameters: how many, of all layers.
        sha256: over its tensors and the rank rule; scores of a saved state depend on both.
        rank_rule: how its scores rank pairs.
    """

    source: str
    parameters: int
    sha256: str
    rank_rule: RankRule


@dataclass(frozen=True)
class QuantizationInfo:
    """What was quantized how, by weight name, and what was left alone.

    Args:
        recipe: of `--quantize`.
        quantized: formats.
        unquantized: names.
        rounded_sha256: over the weights as the artifact computes with them, if a size, a loss or a
            text chose them; None where checkpoint and recipe determine them.
    """

    recipe: str
    quantized: dict[str, str]
    unquantized: list[str]
    rounded_sha256: str | None = None


@dataclass(frozen=True)
class NpuInfo:
    """The graphs as they were compiled for one chip.

    Args:
        soc: of `artifact.socs.SOCS`; Android's `Build.SOC_MODEL` in lower case.
        soc_model, htp_arch: QNN's numbers of the chip.
        binary: the context binary, which holds the weights once for all of its graphs.
        files: by graph, the ONNX file that stands for it and names the binary.
    """

    soc: str
    soc_model: int
    htp_arch: int
    binary: str
    files: dict[str, str]


@dataclass(frozen=True)
class Manifest:
    """Everything a runtime must know of an artifact.

    Args:
        backend: `onnx` or `executorch`.
        target: `cpu` or the accelerator it was compiled for.
        state: the state tensors, owned by the host, each of fixed shape. `length` and `has_memory`
            are the host's counters and always there.
        graphs: by name. `compress_memory` is there under policy `carry`, whose window it moves;
            under `reencode` only with a gate: without one nothing reads M and z.
        parity: figures of the check against the checkpoint, made on this very artifact.
        details: the back end's own report (partitions, operators), for people and for its engine.
        npu: left out for `cpu`.
        own_sha256: of `manifest.json` itself, with zeros in place of these 64 digits; a file
            without it isn't compared.
    """

    schema_version: int
    backend: str
    target: str
    backbone: BackboneInfo
    geometry: Geometry
    gate: GateInfo | None
    scorer: ScorerInfo | None
    state: tuple[TensorSpec, ...]
    graphs: dict[str, GraphSpec]
    quantization: QuantizationInfo
    parity: dict[str, float]
    files: dict[str, FileEntry]
    tools: dict[str, str]
    details: dict[str, Any]
    npu: NpuInfo | UnsetType = UNSET
    own_sha256: str | UnsetType = UNSET


class _Head(msgspec.Struct):
    schema_version: int
    own_sha256: str | None = None


def load_manifest(folder: Path, *, check_files: bool = True) -> Manifest:
    """Reads an artifact's manifest and checks its files.

    Args:
        folder: the artifact.
        check_files: compare size and sha256 of every file with the manifest (a fraction of a
            second per 100 MB); False leaves it at their sizes.

    Raises:
        EdgeInfiniteError: no artifact there, manifest unreadable or of a newer schema, a file
            missing, truncated or altered.
    """
    manifest = read_manifest(folder)
    for name, entry in manifest.files.items():
        _check_entry(folder, name, entry, contents=check_files)
    return manifest


def _not_an_artifact(path: Path) -> EdgeInfiniteError:
    """What to do instead; never a command that would write where something is."""
    make = f"edgeinfinite export --model {{}} --output {'NEW_FOLDER' if path.exists() else path}"
    if path.suffix == ".gguf" or (path / "config.json").is_file():
        return EdgeInfiniteError(
            f"{path} is a checkpoint, not an artifact; make one with: {make.format(path)}"
        )
    if path.is_file():
        return EdgeInfiniteError(f"{path} is a file; give the folder of an artifact")
    lacks = f"{MANIFEST_FILE} is missing" if path.exists() else "there is nothing of that name"
    return EdgeInfiniteError(
        f"{path} is not an artifact ({lacks}); make one with: {make.format('MODEL')}"
    )


def read_manifest(folder: Path) -> Manifest:
    """Reads an artifact's manifest without looking at its files.

    Raises:
        EdgeInfiniteError: no artifact there, manifest unreadable, of another schema, or one that no
            export writes (`manifest_check`).
    """
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise _not_an_artifact(folder)
    text = path.read_bytes()
    check_json(path, text)
    try:
        head = msgspec.json.decode(text, type=_Head)
        version = head.schema_version
        if version > SCHEMA_VERSION:
            raise EdgeInfiniteError(
                f"{path} has schema version {version}, this edgeinfinite reads up to "
                f"{SCHEMA_VERSION}; update edgeinfinite"
            )
        if version < SCHEMA_VERSION:
            raise EdgeInfiniteError(
                f"{path} has schema version {version}, from an edgeinfinite before this one "
                f"({SCHEMA_VERSION}); export the artifact again"
            )
        if head.own_sha256 is not None and not _is_its_own(text, head.own_sha256):
            raise EdgeInfiniteError(
                f"{path} differs from what was exported (own_sha256); copy the artifact again or "
                "export it again"
            )
        refuse_slots_by_head(path, text)
        manifest = msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise EdgeInfiniteError(f"{path} can't be read: {error}; export it again") from error
    check_manifest(path, manifest)
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes `manifest.json`, indented for people, with its own sha256."""
    blank = msgspec.json.encode(replace(manifest, own_sha256=_BLANK))
    text = msgspec.json.format(blank, indent=1) + b"\n"
    digest = hashlib.sha256(text).hexdigest()
    (folder / MANIFEST_FILE).write_bytes(text.replace(_BLANK.encode(), digest.encode()))


def _is_its_own(text: bytes, stated: str) -> bool:
    """Whether `stated` is the sha256 of a manifest's bytes, with zeros in its own place.

    So every bit of the file is checked, names and figures for people too, and a reader needs no
    canonical form of JSON.
    """
    if len(stated) != len(_BLANK):
        return False
    blank = text.replace(stated.encode(), _BLANK.encode())
    return hashlib.sha256(blank).hexdigest() == stated


def file_entry(path: Path) -> FileEntry:
    """Size and sha256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return FileEntry(digest.hexdigest(), path.stat().st_size)


def check_file(folder: Path, name: str, entry: FileEntry) -> str | None:
    """What is wrong with one file of the artifact; None when it is as the manifest says."""
    if not is_plain_name(name):
        return f"file name {name!r} points outside the artifact"
    path = folder / name
    if not path.is_file():
        return f"{path} is missing"
    if path.stat().st_size != entry.size:
        return f"{path} has {path.stat().st_size} bytes, the manifest says {entry.size}"
    if file_entry(path).sha256 != entry.sha256:
        return f"{path} differs from what was exported (sha256)"
    return None


def _check_entry(folder: Path, name: str, entry: FileEntry, *, contents: bool) -> None:
    path = folder / name
    if not contents and path.is_file() and path.stat().st_size == entry.size:
        return
    if problem := check_file(folder, name, entry):
        raise EdgeInfiniteError(f"{problem}; copy the artifact again or export it again")


def pre_tokenizer_of(manifest: Manifest) -> str | None:
    """The `--pre-tokenizer` that the export was given; None without."""
    name = manifest.details.get("pre_tokenizer")
    return name if isinstance(name, str) else None


def cache_type_of(manifest: Manifest) -> str:
    """The type of the KV cache's numbers, `float32`, `float16` or `int8`."""
    return next(spec.dtype for spec in manifest.state if spec.is_cache)


def soc_of(manifest: Manifest) -> str | None:
    """The chip that an artifact was compiled for, None for the CPU."""
    return None if isinstance(manifest.npu, UnsetType) else manifest.npu.soc


def check_soc(folder: Path, manifest: Manifest, soc: str) -> None:
    """Refuses an artifact that is compiled for another chip, or for none.

    Raises:
        EdgeInfiniteError: it is, or the chip is unknown.
    """
    wanted, found = soc_named(soc).name, soc_of(manifest)
    if found != wanted:
        raise EdgeInfiniteError(
            f"{folder} is compiled for {found or 'the CPU'}, not for {wanted}; export it again "
            f"with --target {QNN_HTP} --soc {wanted}"
        )


def fingerprint(manifest: Manifest) -> str:
    """What computed a state: weights, gate, scorer, rank rule, quantization, rounding, layout.

    With equal ones and equal geometry (compared apart) a state goes on bit for bit. Other artifacts
    of the same model take a state over: see `model_digest`.
    """
    parts = [
        manifest.backbone.weights_sha256,
        manifest.gate.sha256 if manifest.gate else "no gate",
        manifest.scorer.sha256 if manifest.scorer else "no scorer",
        manifest.quantization.recipe,
        *sorted({f"{spec.dims} {spec.dtype}" for spec in manifest.state}),
    ]
    if manifest.quantization.rounded_sha256:
        parts.append(manifest.quantization.rounded_sha256)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def model_digest(manifest: Manifest) -> str:
    """What a state is about, see `digest_of_model`."""
    gate, scorer = manifest.gate, manifest.scorer
    return digest_of_model(
        manifest.backbone.weights_sha256,
        gate.sha256 if gate else None,
        scorer.sha256 if scorer else None,
    )


def scales_digest(manifest: Manifest) -> str:
    """sha256 of the scales of an int8 cache, "" for another cache.

    They are measured on the checkpoint, so artifacts of any back end and quantization that read the
    same text for them (`--calibrate`) have the same.
    """
    entry = manifest.files.get(CACHE_SCALES_FILE)
    return entry.sha256 if entry else ""


def digest_of_model(weights: str, gate: str | None, scorer: str | None) -> str:
    """What a state is about: checkpoint, gate, scorer and rank rule, however they are rounded.

    Args:
        weights, gate, scorer: their sha256, as in the manifest.

    Returns:
        With equal ones and equal geometry, an artifact of any back end, recipe and type of cache
        may go on from another one's state.
    """
    parts = ["model", weights, gate or "no gate", scorer or "no scorer"]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
