"""One call from a checkpoint to an artifact: load, attach, back end, tokenizer, check, rename."""

from __future__ import annotations

import gc
import importlib.metadata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import UNSET
from transformers import PreTrainedModel

from edgeinfinite.artifact.manifest import (
    CACHE_SCALES_FILE,
    GATE_FILE,
    MANIFEST_FILE,
    SCHEMA_VERSION,
    SCORER_FILE,
    BackboneInfo,
    GateInfo,
    Manifest,
    ScorerInfo,
    file_entry,
    write_manifest,
)
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.backend import ExportedGraphs, Progress, WeightRequest
from edgeinfinite.export.default_text import chosen_text, first_tokens
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.loss import measure_losses
from edgeinfinite.export.mixing.plan import plan_quantization
from edgeinfinite.export.model_card import write_model_card
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.export.output_folder import unfinished
from edgeinfinite.export.parity.calls import check_parity
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.plan import ExportPlan, plan_export
from edgeinfinite.export.progress import shown
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import (
    attention_layers,
    backbone_parameters,
    config_of,
    rank_rule_of,
)
from edgeinfinite.models.checkpoint.loading import parameters_digest
from edgeinfinite.models.configuration import INT8_CACHE, UNTRAINED_SCORER
from edgeinfinite.models.int8_cache.measure import MEASURED_TOKENS, add_cache_scales
from edgeinfinite.models.memory.gate_file import save_gate
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.scorer_file import save_scorers
from edgeinfinite.models.trained_file import modules_digest, read_metadata, save_layers
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.version import __version__

_INT8_GRAPH_BYTES = 8_000
"""Of the second way to attend (`onnx/passes/int8_prefill.py`) and of rounding in compression."""

_SLOT_BYTES = 12
"""Of the tables of indices that rank and move pairs, for each layer and candidate for a slot; the
demo model's `compress_memory` has 40 tables of 1,152 int64 for 30 layers."""

_SPARE_BYTES = 22_000
"""Of the manifest's figures, the model card, and of tensors that begin at a cache line."""


def export_artifact(
    options: ExportOptions,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> Path:
    """Exports a checkpoint and checks the result against it before it appears at `output`.

    Args:
        options: see `ExportOptions`.
        progress: see `Progress`; None shows a bar if stderr is a terminal.
        tell: called with one sentence for every default that was chosen, before the work that
            goes by it.

    Returns:
        The artifact's folder.

    Raises:
        EdgeInfiniteError: an option is wrong, the model isn't supported, or the artifact doesn't
            compute what the checkpoint does. After an error or Ctrl-C no file is left behind.
    """
    if options.output is None:
        raise EdgeInfiniteError("an export needs a folder for the artifact; give one")
    output = options.output.absolute()
    with shown(progress) as report:
        report("loading the checkpoint", 0.0)
        plan = plan_export(options)
        for note in plan.notes if tell else ():
            tell(note)  # type: ignore[misc]
        with unfinished(output) as folder:
            _write_artifact(plan, folder, report, tell or (lambda _: None))
    return output


def _write_artifact(
    plan: ExportPlan, folder: Path, report: Progress, tell: Callable[[str], None]
) -> None:
    model, backend, asked = plan.backbone.model, plan.backend, plan.options.quantization
    report("writing the tokenizer", 0.05)
    plan.texts.write(folder)
    gate_info = _write_gate(model, plan.config.gate, folder)
    scorer_info = _write_scorer(model, folder)
    if plan.config.cache_type == INT8_CACHE:
        report("measuring the ranges of K and V", 0.05)
        _write_cache_scales(plan, folder)
    weights = plan_quantization(
        plan.backbone,
        backend,
        plan.recipe,
        asked,
        lambda: _left_for_weights(plan, folder),
        lambda what, done: report(what, 0.05 + 0.05 * done),
    )
    for note in weights.notes:
        tell(note)
    request = WeightRequest(model, weights.recipe, weights.integers)
    exported = backend.export_graphs(
        request, folder, plan.options.target, lambda what, done: report(what, 0.1 + 0.6 * done)
    )
    gc.collect()  # the traced graphs are cycles, and hold the packed weights
    reference = backend.quantized_reference(request)
    if weights.turned:
        exported.details["turned"] = True
    if weights.calibrated:
        exported.details["calibrated"] = True
        digest = parameters_digest(reference, gates=False)
        rounded = replace(exported.quantization, rounded_sha256=digest)
        exported = replace(exported, quantization=rounded)
    if plan.options.pre_tokenizer is not None:
        exported.details["pre_tokenizer"] = plan.options.pre_tokenizer
    manifest = _manifest(plan, gate_info, scorer_info, exported, folder)
    write_manifest(folder, manifest)
    _refuse_larger(folder, asked.max_mb)
    checks = check_parity(
        folder,
        TorchEngine(reference),
        exact=backend.exact_parity,
        progress=lambda what, done: report(what, 0.72 + 0.26 * done),
    )
    del reference  # the next step loads the artifact beside the checkpoint
    _refuse_failed(checks)
    parity = {check.check: check.value for check in (*plan.checks, *checks)}
    if plan.recipe.name != "none":
        report("measuring what the weights lose", 0.98)
        _, held_out = chosen_text(asked.calibrate)
        parity |= measure_losses(folder, model, held_out).figures()
    manifest = replace(manifest, parity=parity)
    write_manifest(folder, manifest)
    write_model_card(folder, manifest)
    _refuse_larger(folder, asked.max_mb)


def _left_for_weights(plan: ExportPlan, folder: Path) -> float:
    """Bytes under `max_mb`, when what isn't quantized and the graphs are taken off.

    Args:
        plan: of this export.
        folder: holds every file but the back end's.
    """
    model = plan.backbone.model
    files = sum(file.stat().st_size for file in folder.iterdir())
    scorers = [s for layer in attention_layers(model) if (s := layer.retention_scorer) is not None]
    # A scorer lies in its file; the graphs hold those that rank, in half precision.
    apart = {id(parameter) for scorer in scorers for parameter in scorer.parameters()}
    floats = sum(
        4 * parameter.numel()
        for name, parameter in model.named_parameters()
        if not plan.recipe.format_of(name) and id(parameter) not in apart
    )
    shape = ModelShape.of(model)
    others = plan.backend.graph_bytes * shape.layers + _SPARE_BYTES
    others += sum(2 * p.numel() for s in scorers if not s.streams for p in s.parameters())
    if shape.cache_type == INT8_CACHE:  # in the graphs for tokens, and in the one that compresses
        others += 2 * 2 * 4 * shape.layers * shape.kv_heads * shape.head_dim
        others += _INT8_GRAPH_BYTES * shape.layers
    geometry = shape.geometry
    if geometry.policy != "carry" and plan.backend.keeps_angles:
        others += 2 * 4 * geometry.capacity * shape.head_dim
    if geometry.policy == "carry":
        others += _rotary_bytes(model, max(shape.capacities))
        others += _SLOT_BYTES * shape.layers * (geometry.most_slots + geometry.segment_length)
    return 1e6 * (plan.options.quantization.max_mb or 0.0) - files - floats - others


def _rotary_bytes(model: PreTrainedModel, positions: int) -> int:
    """Bytes of the tables of angles that moving a window needs; layers of a kind share theirs."""
    tables = rotary_tables(model, positions)
    tensors = {id(t): t for table in tables for t in (table.cos, table.sin) if t is not None}
    return sum(tensor.nbytes for tensor in tensors.values())


def _refuse_larger(folder: Path, max_mb: float | None) -> None:
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    if max_mb is not None and size > max_mb:
        raise EdgeInfiniteError(
            f"the artifact came out at {size:,.2f} MB; nothing was written. Ask for "
            f"{2 * max_mb - size:,.1f} MB to get one below {max_mb:,.1f}"
        )


def _write_scorer(model: PreTrainedModel, folder: Path) -> ScorerInfo | None:
    """Writes the scorer's tensors and card; `evaluate` skips documents it was trained on."""
    scorers: list[Any] = [layer.retention_scorer for layer in attention_layers(model)]
    source = config_of(model).scorer
    if scorers[0] is None or source is None:
        return None
    card = {} if source == UNTRAINED_SCORER else read_metadata(Path(source))
    rule = rank_rule_of(model)
    save_scorers(folder / SCORER_FILE, scorers, rule, card)
    return ScorerInfo(
        source=Path(source).name,
        parameters=sum(p.numel() for scorer in scorers for p in scorer.parameters()),
        sha256=modules_digest(scorers, rule.to_json()),
        rank_rule=rule,
    )


def _write_cache_scales(plan: ExportPlan, folder: Path) -> None:
    """Measures an int8 cache's scales, and writes them for `verify`; the graphs hold them too."""
    text, _ = chosen_text(plan.options.quantization.calibrate)
    tokens = first_tokens(plan.backbone.tokenizer, text, MEASURED_TOKENS)
    scales = add_cache_scales(plan.backbone.model, tokens)
    save_layers(folder / CACHE_SCALES_FILE, scales, {})


def _write_gate(model: PreTrainedModel, gate: str, folder: Path) -> GateInfo | None:
    """Writes the gate's tensors, so that `verify` can repeat the parity check."""
    layers = attention_layers(model)
    first = layers[0].memory_gate
    if first is None:
        return None
    card = read_metadata(Path(gate)) if Path(gate).is_file() else {}
    save_gate(folder / GATE_FILE, layers, card)
    gates = [layer.memory_gate for layer in layers]
    return GateInfo(
        source=Path(gate).name,
        rank=first.w1.out_features,
        parameters=sum(p.numel() for gate in gates for p in gate.parameters()),
        sha256=modules_digest(gates, f"{first.feature_map.name} {first.opening}"),
        feature_map=first.feature_map.name,
        opening=first.opening,
    )


def _manifest(
    plan: ExportPlan,
    gate: GateInfo | None,
    scorer: ScorerInfo | None,
    exported: ExportedGraphs,
    folder: Path,
) -> Manifest:
    """The manifest without the parity figures, which are measured on the artifact itself."""
    backbone, backend = plan.backbone, plan.backend
    model = backbone.model
    shape = ModelShape.of(model)
    info = BackboneInfo(
        name=backbone.name,
        architecture=type(model).__name__,
        layers=shape.layers,
        query_heads=shape.query_heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        heads=shape.heads or UNSET,
        vocabulary=shape.vocabulary,
        max_positions=architecture_of(model).positions,
        parameters=backbone_parameters(model),
        weights_sha256=backbone.weights_sha256,
        hidden_size=model.config.get_text_config().hidden_size,
    )
    files = sorted(path for path in folder.iterdir() if path.name != MANIFEST_FILE)
    packages = ("torch", "transformers", *backend.tools)
    return Manifest(
        schema_version=SCHEMA_VERSION,
        backend=backend.name,
        target=plan.options.target,
        backbone=info,
        geometry=shape.geometry,
        gate=gate,
        scorer=scorer,
        state=exported.state,
        graphs=exported.graphs,
        quantization=exported.quantization,
        parity={},
        files={path.name: file_entry(path) for path in files},
        tools={"edgeinfinite": __version__}
        | {package: importlib.metadata.version(package) for package in packages},
        details=exported.details,
        npu=exported.npu,
    )


def _refuse_failed(checks: list[Check]) -> None:
    failed = [f"{c.check} is {c.value:.3g}, limit {c.limit:.3g}" for c in checks if not c.passed]
    if failed:
        raise EdgeInfiniteError(
            f"the exported model doesn't compute what the checkpoint does: {'; '.join(failed)}; "
            "nothing was written. Please report this with the model's name"
        )
