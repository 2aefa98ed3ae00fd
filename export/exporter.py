"""One call from a checkpoint to an artifact: load, attach, back end, tokenizer, check, rename."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm
from transformers import PreTrainedModel

from edgeinfinite import EdgeInfiniteError, __version__
from edgeinfinite.export.backend import Backend, ExportedGraphs, Progress, backend_named
from edgeinfinite.export.checks import Check
from edgeinfinite.export.default_text import chosen_text
from edgeinfinite.export.gates import GATE_FILE, SCORER_FILE, choose_gate, tell_gate
from edgeinfinite.export.graphs import ModelShape
from edgeinfinite.export.loss import measure_losses
from edgeinfinite.export.mixing.plan import QuantizationOptions, plan_quantization
from edgeinfinite.export.output_folder import check_output, unfinished
from edgeinfinite.export.parity import check_parity
from edgeinfinite.export.recipes import Recipe, recipe_named
from edgeinfinite.export.text_files import write_text_files
from edgeinfinite.models.attach import (
    attach,
    attention_layers,
    backbone_parameters,
    check_supported,
    config_of,
    head_dim_of,
)
from edgeinfinite.models.configuration import NO_GATE, UNTRAINED_SCORER, EdgeInfiniteConfig
from edgeinfinite.models.gate_file import save_gate
from edgeinfinite.models.geometry import TRAINED_SLOTS, Geometry, GeometryOptions
from edgeinfinite.models.loading import Backbone, load_backbone
from edgeinfinite.models.shipped import choose_geometry
from edgeinfinite.models.state_size import StateShape, geometry_within
from edgeinfinite.models.trained_file import read_metadata, save_layers
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.manifest import (
    MANIFEST_FILE,
    SCHEMA_VERSION,
    BackboneInfo,
    GateInfo,
    Manifest,
    file_entry,
    write_manifest,
)

_GRAPH_BYTES = 36_000
"""Of the graphs and the manifest, for each layer; the demo model's and Gemma's are 28,000."""

_ROPE_BYTES = 1_000_000
"""Of the tables of angles that moving a window needs, under `carry` (the demo model's: 920,000)."""

_SPARE_BYTES = 20_000
"""Of the manifest's figures and of tensors that begin at a cache line."""


@dataclass(frozen=True)
class ExportOptions:
    """What to export.

    Args:
        model: what `load_backbone` takes.
        output: the artifact's folder; must not exist, be empty, or be an artifact to replace.
        backend: `onnx` or `executorch`.
        target: `cpu` or an accelerator that the back end knows.
        quantize: a recipe's name.
        gate: a trained gate's file, `untrained`, `none` (the memory is never read), or None for
            the gate shipped for this model and geometry, untrained where there is none.
        geometry: lengths and policy of the cache; what isn't asked for is the model's default.
        scorer: a trained retention scorer's file, which recall slots need; None takes the one
            shipped for this checkpoint.
        state_mb: megabytes that the state may take: chooses the segment length (`reencode`) or the
            recall slots (`carry`); None leaves the geometry as it is.
        cache_type: of the KV cache's numbers; None takes float16 for quantized weights and within
            `state_mb`, where the back end can, else float32.
        quantization: a size or a loss to choose formats for, and calibrated rounding.
    """

    model: str
    output: Path
    backend: str = "onnx"
    target: str = "cpu"
    quantize: str = "none"
    gate: str | None = None
    geometry: Geometry | GeometryOptions = field(default_factory=GeometryOptions)
    scorer: str | None = None
    state_mb: float | None = None
    cache_type: str | None = None
    quantization: QuantizationOptions = field(default_factory=QuantizationOptions)


def export_artifact(options: ExportOptions, progress: Progress | None = None) -> Path:
    """Exports a checkpoint and checks the result against it before it appears at `output`.

    Args:
        options: see there.
        progress: see `Progress`; None shows a bar on stderr if that is a terminal.

    Returns:
        The artifact's folder.

    Raises:
        EdgeInfiniteError: an option is wrong, the model isn't supported, or the artifact doesn't
            compute what the checkpoint does. Nothing is left behind then, nor on Ctrl-C.
    """
    backend = backend_named(options.backend)
    recipe = recipe_named(options.quantize)
    if options.target not in backend.targets:
        raise EdgeInfiniteError(
            f"the back end {backend.name} has no target {options.target!r}; "
            f"choose one of {', '.join(backend.targets)}"
        )
    cache_type = _cache_type(options, backend)
    output = options.output.absolute()
    check_output(output)
    with _bar(progress) as report, unfinished(output) as folder:
        report("loading the checkpoint", 0.0)
        backbone = load_backbone(options.model)
        geometry, scorer = choose_geometry(
            options.geometry,
            options.scorer,
            backbone,
            fit=lambda geometry: _geometry_within(geometry, options, backbone, cache_type),
        )
        gate = choose_gate(options.gate, backbone, geometry)
        tell_gate(gate, options.gate)
        config = EdgeInfiniteConfig(geometry, gate, scorer=scorer, cache_type=cache_type)
        attach(backbone.model, config)
        _write_artifact(backbone, gate, options, backend, recipe, folder, report)
    return output


def _geometry_within(
    geometry: Geometry, options: ExportOptions, backbone: Backbone, cache_type: str
) -> Geometry:
    if options.state_mb is None:
        return geometry
    chosen = "segment_length" if geometry.policy == "reencode" else "recall_slots"
    asked = options.geometry
    given = getattr(asked, chosen) if isinstance(asked, GeometryOptions) else None
    if given is not None and given != TRAINED_SLOTS:
        name = "--" + chosen.replace("_", "-")
        raise EdgeInfiniteError(f"--state-mb chooses {name}; leave one of them out")
    check_supported(backbone.model)
    text = backbone.model.config.get_text_config()
    gate = choose_gate(options.gate, backbone, geometry)
    shape = StateShape(
        text.num_hidden_layers,
        text.num_key_value_heads,
        head_dim_of(text),
        cache_type,
        reads_memory=gate != NO_GATE,
        positions=text.max_position_embeddings,
    )
    return geometry_within(geometry, options.state_mb, shape)


def _cache_type(options: ExportOptions, backend: Backend) -> str:
    if options.cache_type is None:
        # A state that mustn't grow holds twice as many tokens in halves, at next to no loss.
        wanted = options.quantize != "none" or options.state_mb is not None
        halves = wanted and "float16" in backend.cache_types
        return "float16" if halves else "float32"
    if options.cache_type not in backend.cache_types:
        raise EdgeInfiniteError(
            f"the back end {backend.name} has no cache type {options.cache_type!r}; "
            f"choose one of {', '.join(backend.cache_types)}"
        )
    return options.cache_type


def _write_artifact(
    backbone: Backbone,
    gate: str,
    options: ExportOptions,
    backend: Backend,
    recipe: Recipe,
    folder: Path,
    report: Progress,
) -> None:
    model = backbone.model
    report("writing the tokenizer", 0.05)
    write_text_files(backbone, folder)
    gate_info = _write_gate(model, gate, folder)
    scorers: list[Any] = [layer.retention_scorer for layer in attention_layers(model)]
    if scorers[0] is not None:
        save_layers(folder / SCORER_FILE, scorers, _card_of_scorer(model))
    plan = plan_quantization(
        backbone,
        backend,
        recipe,
        options.quantization,
        lambda: _left_for_weights(model, recipe, options, folder),
        lambda what, done: report(what, 0.05 + 0.05 * done),
    )
    exported = backend.export_graphs(
        model,
        plan.recipe,
        folder,
        options.target,
        lambda what, done: report(what, 0.1 + 0.6 * done),
        plan.integers,
    )
    exported.details["calibrated"] = plan.calibrated
    manifest = _manifest(backbone, gate_info, exported, options, backend, folder)
    write_manifest(folder, manifest)
    _refuse_larger(folder, options.quantization.max_mb)
    checks = check_parity(
        folder,
        TorchEngine(backend.quantized_reference(model, plan.recipe, plan.integers)),
        progress=lambda what, done: report(what, 0.72 + 0.26 * done),
    )
    _refuse_failed(checks)
    parity = {check.check: check.value for check in checks}
    if recipe.name != "none":
        report("measuring what the weights lose", 0.98)
        _, held_out = chosen_text(options.quantization.calibrate)
        parity |= measure_losses(folder, model, held_out).figures()
    write_manifest(folder, replace(manifest, parity=parity))


def _left_for_weights(
    model: PreTrainedModel, recipe: Recipe, options: ExportOptions, folder: Path
) -> float:
    """Bytes under `max_mb`, when what isn't quantized and the graphs are taken off.

    Args:
        model, recipe, options: of this export.
        folder: holds every file but the back end's.
    """
    files = sum(file.stat().st_size for file in folder.iterdir())
    floats = sum(4 * p.numel() for n, p in model.named_parameters() if not recipe.format_of(n))
    shape = ModelShape.of(model)
    others = _GRAPH_BYTES * shape.layers + _SPARE_BYTES
    others += _ROPE_BYTES if shape.geometry.policy == "carry" else 0
    return 1e6 * (options.quantization.max_mb or 0.0) - files - floats - others


def _refuse_larger(folder: Path, max_mb: float | None) -> None:
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    if max_mb is not None and size > max_mb:
        raise EdgeInfiniteError(
            f"the artifact came out at {size:,.2f} MB; nothing was written. Ask for "
            f"{2 * max_mb - size:,.1f} MB to get one below {max_mb:,.1f}"
        )


def _card_of_scorer(model: PreTrainedModel) -> dict[str, str]:
    """What the scorer was trained on goes along: `evaluate` leaves those documents out."""
    scorer = config_of(model).scorer
    return {} if scorer is None or scorer == UNTRAINED_SCORER else read_metadata(Path(scorer))


def _write_gate(model: PreTrainedModel, gate: str, folder: Path) -> GateInfo | None:
    """The gate's tensors go with the artifact, so that `verify` can repeat the check."""
    layers = attention_layers(model)
    first = layers[0].memory_gate
    if first is None:
        return None
    card = read_metadata(Path(gate)) if Path(gate).is_file() else {}
    save_gate(folder / GATE_FILE, layers, card)
    return GateInfo(
        source=Path(gate).name,
        rank=first.w1.out_features,
        parameters=sum(p.numel() for layer in layers for p in layer.memory_gate.parameters()),
        sha256=file_entry(folder / GATE_FILE).sha256,
        feature_map=first.feature_map.name,
        opening=first.opening,
    )


def _manifest(
    backbone: Backbone,
    gate: GateInfo | None,
    exported: ExportedGraphs,
    options: ExportOptions,
    backend: Backend,
    folder: Path,
) -> Manifest:
    """All but the parity figures, which the artifact itself is needed for."""
    model = backbone.model
    shape = ModelShape.of(model)
    info = BackboneInfo(
        name=backbone.name,
        architecture=type(model).__name__,
        layers=shape.layers,
        query_heads=shape.query_heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        vocabulary=shape.vocabulary,
        max_positions=model.config.get_text_config().max_position_embeddings,
        parameters=backbone_parameters(model),
        weights_sha256=backbone.weights_sha256,
    )
    files = sorted(path for path in folder.iterdir() if path.name != MANIFEST_FILE)
    packages = ("torch", "transformers", *backend.tools)
    return Manifest(
        schema_version=SCHEMA_VERSION,
        backend=backend.name,
        target=options.target,
        backbone=info,
        geometry=shape.geometry,
        gate=gate,
        state=exported.state,
        graphs=exported.graphs,
        quantization=exported.quantization,
        parity={},
        files={path.name: file_entry(path) for path in files},
        tools={"edgeinfinite": __version__}
        | {package: importlib.metadata.version(package) for package in packages},
        details=exported.details,
    )


def _refuse_failed(checks: list[Check]) -> None:
    failed = [f"{c.check} is {c.value:.3g}, limit {c.limit:.3g}" for c in checks if not c.passed]
    if failed:
        raise EdgeInfiniteError(
            f"the exported model doesn't compute what the checkpoint does: {'; '.join(failed)}; "
            "nothing was written. Please report this with the model's name"
        )


@contextmanager
def _bar(progress: Progress | None) -> Iterator[Callable[[str, float], None]]:
    if progress is not None:
        yield progress
        return
    with tqdm(
        total=100, file=sys.stderr, disable=None, bar_format="{desc}: {bar} {elapsed}"
    ) as bar:

        def show(what: str, done: float) -> None:
            bar.set_description_str(what)
            bar.n = round(100 * done)
            bar.refresh()

        yield show
