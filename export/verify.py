"""Checks a finished artifact: its files, its graphs' signatures, and the numbers it computes."""

from __future__ import annotations

from pathlib import Path

from edgeinfinite.artifact.manifest import (
    CACHE_SCALES_FILE,
    GATE_FILE,
    SCORER_FILE,
    Manifest,
    cache_type_of,
    check_file,
    check_soc,
    pre_tokenizer_of,
    read_manifest,
    soc_of,
)
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.against_gguf import check_against_gguf
from edgeinfinite.export.backend import Integers, Progress, WeightRequest, backend_named
from edgeinfinite.export.mixing.rotation import rotate_residual
from edgeinfinite.export.parity.calls import check_parity
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.parity.untouched import check_untouched
from edgeinfinite.export.progress import shown
from edgeinfinite.export.recipes import Recipe, WeightFormat, exact_recipe, recipe_named
from edgeinfinite.files import read_text_file
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone
from edgeinfinite.models.configuration import INT8_CACHE, NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines import Engine, load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine


def verify_artifact(
    folder: Path,
    *,
    against: Path | None = None,
    text: Path | None = None,
    model: str | None = None,
    soc: str | None = None,
    progress: Progress | None = None,
) -> list[Check]:
    """Repeats what the export checked, on the folder as it is now.

    An artifact for an NPU runs in its emulator. The export itself compares the same graphs on the
    CPU, which is faster.

    Args:
        folder: the artifact.
        against: compare with this artifact instead of the checkpoint; a `.gguf` file is compared
            as llama.cpp reads it, see `against_gguf`.
        text: UTF-8 text to read; None takes the text that the export used.
        model: the checkpoint; None takes the one that the manifest names.
        soc: refuse an artifact that is compiled for another chip.
        progress: see `Progress`; None shows a bar if stderr is a terminal.

    Returns:
        `checksum:FILE`, `io:GRAPH`, `weights` (of the checkpoint), and the checks of
        `check_untouched`, `check_parity` and of the back end's `exact_parity`. If files are damaged
        or signatures differ, no graph is run.

    Raises:
        EdgeInfiniteError: the artifact or the checkpoint isn't found, the text isn't UTF-8, or the
            artifact is for another chip.
    """
    with shown(progress) as report:
        return _verify(folder, against, text, model, soc, report)


def _verify(
    folder: Path,
    against: Path | None,
    text: Path | None,
    model: str | None,
    soc: str | None,
    progress: Progress,
) -> list[Check]:
    manifest = read_manifest(folder)
    if soc is not None:
        check_soc(folder, manifest, soc)
    progress("checking files", 0.0)
    checks = [
        Check(f"checksum:{name}", problem is None, float(problem is None))
        for name, entry in manifest.files.items()
        for problem in [check_file(folder, name, entry)]
    ]
    if all(check.passed for check in checks):
        checks += backend_named(manifest.backend, soc_of(manifest)).check_signatures(
            folder, manifest
        )
    if not all(check.passed for check in checks):
        return checks
    if against is not None and against.suffix == ".gguf":
        return checks + check_against_gguf(folder, manifest, against)
    emulate = soc_of(manifest) is not None
    words = None if text is None else read_text_file(text)
    if against is not None:
        other = load_engine(against)
        _check_comparable(manifest, read_manifest(against), against)
        return checks + check_parity(
            folder,
            other,
            text=words,
            same_weights=False,
            every_call=True,
            emulate=emulate,
            progress=lambda what, done: progress(what, 0.05 + 0.95 * done),
        )
    reference, of_checkpoint = _reference(folder, manifest, model, progress)
    # Scaled weights are in the artifact only: it is compared with the float checkpoint.
    same = not manifest.details.get("calibrated")
    parity = check_parity(
        folder,
        reference,
        text=words,
        same_weights=same,
        every_call=True,
        exact=backend_named(manifest.backend, soc_of(manifest)).exact_parity if same else None,
        emulate=emulate,
        progress=lambda what, done: progress(what, 0.2 + 0.8 * done),
    )
    return [*checks, *of_checkpoint, *parity]


def quantized_reference(folder: Path, manifest: Manifest, model: str | None = None) -> TorchEngine:
    """The checkpoint in PyTorch, with the artifact's gate and its quantized weights.

    Args:
        folder, manifest: the artifact.
        model: the checkpoint; None takes the one that the manifest names.

    Raises:
        EdgeInfiniteError: the checkpoint isn't found.
    """
    return _reference(folder, manifest, model, lambda *_: None)[0]


def _reference(
    folder: Path, manifest: Manifest, model: str | None, progress: Progress
) -> tuple[TorchEngine, list[Check]]:
    """See `quantized_reference`; whether the checkpoint is the artifact's own, and what it computes
    is what transformers does.
    """
    backend = backend_named(manifest.backend, soc_of(manifest))
    plain = manifest.quantization.recipe != "none" and not manifest.details.get("calibrated")
    progress("loading the checkpoint", 0.02)
    try:
        backbone = load_backbone(
            model or manifest.backbone.name,
            stored=plain and backend.menu.reads_stored,
            pre_tokenizer=pre_tokenizer_of(manifest),
        )
    except EdgeInfiniteError as error:
        if model is not None:
            raise
        raise EdgeInfiniteError(
            f"the checkpoint {manifest.backbone.name} isn't found from here; give --model ({error})"
        ) from error
    same = backbone.weights_sha256 == manifest.backbone.weights_sha256
    attach(backbone.model, configuration_of(folder, manifest))
    progress("comparing the model with transformers", 0.12)
    checks = [
        Check("weights", same, float(same)),
        *check_untouched(backbone.model, manifest.geometry.policy),
    ]
    if manifest.details.get("turned"):
        rotate_residual(backbone.model)
    if manifest.details.get("calibrated"):
        engine = TorchEngine(backbone.model)
    else:
        request = WeightRequest(backbone.model, *_as_exported(backbone, manifest))
        engine = TorchEngine(backend.quantized_reference(request))
    _check_state(folder, manifest, engine)
    return engine, checks


def configuration_of(folder: Path, manifest: Manifest) -> EdgeInfiniteConfig:
    """What `attach` was given for an artifact, with the artifact's own files."""
    cache_type = cache_type_of(manifest)
    return EdgeInfiniteConfig(
        manifest.geometry,
        NO_GATE if manifest.gate is None else str(folder / GATE_FILE),
        scorer=str(folder / SCORER_FILE) if manifest.geometry.recall_slots else None,
        cache_type=cache_type,
        cache_scales=str(folder / CACHE_SCALES_FILE) if cache_type == INT8_CACHE else None,
    )


def _as_exported(backbone: Backbone, manifest: Manifest) -> tuple[Recipe, Integers]:
    """The formats that the manifest names, and the checkpoint's integers where they are those."""
    named = recipe_named(manifest.quantization.recipe)
    formats = {
        name: WeightFormat.parse(text) for name, text in manifest.quantization.quantized.items()
    }
    integers = {
        name: weight
        for name, weight in (backbone.integers if named.keeps_integers else {}).items()
        if name in formats and (manifest.backend != "onnx" or weight.bits == formats[name].bits)
    }
    return exact_recipe(named.name, formats), integers


def _check_state(folder: Path, manifest: Manifest, reference: Engine) -> None:
    """Refuses an artifact of an earlier version whose state has other tensors."""
    of_artifact = {spec.name for spec in manifest.state}
    other = sorted(of_artifact ^ set(reference.new_state().arrays))
    if other:
        raise EdgeInfiniteError(
            f"{folder} has another state than this version computes with ({', '.join(other[:3])}"
            f"{', ...' if other[3:] else ''}); it runs as it was exported, but to check it, "
            "export it again"
        )


def _check_comparable(one: Manifest, other: Manifest, path: Path) -> None:
    if one.geometry != other.geometry or one.backbone.vocabulary != other.backbone.vocabulary:
        raise EdgeInfiniteError(f"{path} has another geometry or vocabulary; compare equal ones")
