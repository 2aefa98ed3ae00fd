"""Decides before the long work what an export will do: geometry, gate, scorer, recipe, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgeinfinite.artifact.backends import backend_entry
from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.backend import Backend, WeightRequest, backend_named
from edgeinfinite.export.exportable import check_exportable, check_form
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.mixing.calibration import load_in_files
from edgeinfinite.export.one_thread import one_thread
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.export.output_folder import check_output
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.recipes import Recipe, recipe_named
from edgeinfinite.export.text_files import TextFiles, read_template, text_files
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone
from edgeinfinite.models.checkpoint.settings import CheckpointSettings
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.runtime_py.session.state import state_bytes


@dataclass(frozen=True)
class ExportPlan:
    """All choices of an export, before anything is written.

    Args:
        options: the options as given.
        backbone: loaded and attached.
        config: the configuration it was attached with.
        backend, recipe: those that the options name.
        texts: tokenizer, chat template and generation settings of the artifact.
        notes: one sentence for each default that was chosen.
        checks: what was compared with transformers.
    """

    options: ExportOptions
    backbone: Backbone
    config: EdgeInfiniteConfig
    backend: Backend
    recipe: Recipe
    texts: TextFiles
    notes: tuple[str, ...]
    checks: tuple[Check, ...] = ()

    @property
    def state_bytes(self) -> int:
        """Bytes of the state, the same for any length of text."""
        return state_bytes(ModelShape.of(self.backbone.model).state())

    def weights_bytes(self) -> int:
        """Bytes of the weights as the artifact will hold them."""
        integers = self.backbone.integer_scales if self.recipe.keeps_integers else None
        request = WeightRequest(self.backbone.model, self.recipe, integers)
        with one_thread():  # some rows of each weight are rounded
            return self.backend.weights_bytes(request)

    def table(self) -> str:
        """The plan for people: what `export --dry-run` prints."""
        geometry, target = self.config.geometry, self.options.target
        shape = ModelShape.of(self.backbone.model)
        every = "every layer" if not geometry.has_windows else "every other layer"
        slots = ", ".join(
            f"{count} in layers {_ranges(layers)}" if geometry.varies else f"{count} in {every}"
            for count, layers in _layers_by_slots(geometry, shape.layers).items()
        )
        windows = ", ".join(
            f"{window} in layers {_ranges(layers)}, which hold nothing else"
            for window, layers in _layers_by_window(geometry, shape.layers).items()
        )
        rows = {
            "model": f"{self.backbone.name} ({type(self.backbone.model).__name__})",
            "back end": ", ".join(filter(None, (self.backend.name, target, self.options.soc))),
            "policy": geometry.policy,
            "sinks": f"{geometry.sink_length}",
            "recall slots": slots,
            "segment": f"{geometry.segment_length}",
            "window": f"{geometry.window_length}",
            **({"sliding": windows} if windows else {}),
            "slots in all": f"{sum(shape.capacities) / shape.layers:,.0f} in an average layer",
            "KV cache": self.config.cache_type,
            "memory gate": Path(self.config.gate).name,
            "scorer": Path(self.config.scorer).name if self.config.scorer else "none",
            "weights": f"{self.recipe.name}, {self.weights_bytes() / 1e6:,.1f} MB",
            "state": f"{self.state_bytes / 1e6:,.1f} MB",
        }
        return "\n".join(f"{name:<14}{value}" for name, value in rows.items())


def plan_export(options: ExportOptions, *, shapes: bool = False) -> ExportPlan:
    """Loads and attaches the model, and makes every choice.

    Args:
        options: see there.
        shapes: plan for a folder without weights, too, by its configuration; not to be exported.

    Raises:
        EdgeInfiniteError: an option is wrong or doesn't fit the model, or the model isn't
            supported.
    """
    targets = backend_entry(options.backend).targets
    if options.target not in targets:
        raise EdgeInfiniteError(
            f"the back end {options.backend} has no target {options.target!r}; "
            f"choose one of {', '.join(targets)}"
        )
    backend = backend_named(options.backend, options.soc)
    recipe = recipe_named(options.quantize)
    if options.cache_type not in (None, *backend.cache_types):
        raise EdgeInfiniteError(
            f"the back end {backend.name} has no cache type {options.cache_type!r}; "
            f"choose one of {', '.join(backend.cache_types)}"
        )
    if options.output is not None:
        check_output(options.output.absolute())
    backbone, texts = _loaded(options, backend, recipe, shapes)
    if not backbone.has_weights:
        check_form(backbone.model)  # first: what is refused may not run on alike rows
    resolved = resolve(backbone, model_options(options, backend))
    checks: list[Check] = []
    notes = [*texts.notes, *resolved.notes]
    if backbone.has_weights:
        checks = check_exportable(backbone.model, resolved.config.geometry.policy)
    else:
        notes.append(
            f"{backbone.name} has no weights: sizes are those of its configuration, and nothing "
            "was tried"
        )
    attach(backbone.model, resolved.config)
    facts = architecture_of(backbone.model)
    backend.check_architecture(facts, resolved.config.geometry)
    if facts.experts and options.quantization.calibrates:
        raise EdgeInfiniteError(
            f"{facts.name} has experts ({facts.experts}), whose bits aren't mixed and whose "
            "rounding isn't calibrated yet; leave --max-mb, --max-loss and --calibrate out"
        )
    return ExportPlan(
        options, backbone, resolved.config, backend, recipe, texts, tuple(notes), tuple(checks)
    )


def model_options(options: ExportOptions, backend: Backend) -> ModelOptions:
    """What an export asks of the model, with what the back end has to offer."""
    return ModelOptions(
        options.geometry,
        options.gate,
        options.scorer,
        options.cache_type,
        backend.cache_types,
        quantized=options.quantize != "none",
    )


def _loaded(
    options: ExportOptions, backend: Backend, recipe: Recipe, shapes: bool
) -> tuple[Backbone, TextFiles]:
    """The checkpoint, its settings judged before its weights are read."""
    found: list[TextFiles] = []

    def judge(settings: CheckpointSettings) -> None:
        if options.chat_template is not None:
            settings.tokenizer.chat_template = read_template(options.chat_template)
        found.append(text_files(options.model, settings))

    if options.quantization.calibrates:
        backbone = load_in_files(options.model, judge, options.pre_tokenizer)
    else:  # an artifact of floats holds float32 weights
        stored = recipe.name != "none" and backend.menu.reads_stored
        backbone = load_backbone(
            options.model,
            stored=stored,
            shapes=shapes,
            judge=judge,
            pre_tokenizer=options.pre_tokenizer,
        )
    return backbone, found[0]


def _layers_by_slots(geometry: Geometry, layers: int) -> dict[int, list[int]]:
    """Which layers have G recall slots, the largest G first."""
    found: dict[int, list[int]] = {}
    for layer in range(layers):
        if not geometry.slides(layer):
            found.setdefault(geometry.slots_of(layer), []).append(layer)
    return dict(sorted(found.items(), reverse=True))


def _layers_by_window(geometry: Geometry, layers: int) -> dict[int, list[int]]:
    """Which layers have sliding windows of what length."""
    found: dict[int, list[int]] = {}
    for layer in range(layers):
        if geometry.slides(layer):
            found.setdefault(geometry.window_of(layer), []).append(layer)
    return found


def _ranges(numbers: list[int]) -> str:
    """Sorted numbers as `0-6, 8, 10-13`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
