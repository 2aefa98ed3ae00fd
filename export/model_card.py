"""The artifact's `README.md`: a model card as the Hugging Face hub shows it. No runtime reads it.

An export writes what its manifest knows; `evaluation/model_card/` writes the same card again, with
sections about what was measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from edgeinfinite.artifact.manifest import MODEL_CARD, Manifest
from edgeinfinite.export.loss import told
from edgeinfinite.export.mixing.report import kind_of
from edgeinfinite.files import write_atomically
from edgeinfinite.models.checkpoint.loading import DEMO_MODEL
from edgeinfinite.runtime_py.session.state import state_bytes

_HUB_IDS = {DEMO_MODEL: "HuggingFaceTB/SmolLM2-135M-Instruct"}
_RUN = """\
```
pip install -e '.[{extra}]'                         # in a checkout of EdgeInfinite
edgeinfinite generate FOLDER --prompt-file TEXT    # FOLDER: this one
edgeinfinite chat FOLDER
edgeinfinite verify FOLDER --model CHECKPOINT      # is it what the checkpoint computes?
```"""


@dataclass(frozen=True)
class Section:
    """A part of the card.

    Args:
        title: its heading.
        body: Markdown.
    """

    title: str
    body: str


@dataclass(frozen=True)
class Origin:
    """What a checkpoint's own card says and no manifest holds.

    Args:
        base_model: its id on the hub; None if it isn't known.
        license: an identifier of the hub's, such as `apache-2.0`; None if it isn't known.
    """

    base_model: str | None = None
    license: str | None = None


def write_model_card(
    folder: Path,
    manifest: Manifest,
    sections: Sequence[Section] = (),
    results: Sequence[EvalResult] = (),
    origin: Origin | None = None,
) -> Path:
    """Writes the card of a complete artifact.

    Args:
        folder: the artifact.
        manifest: its own, with the parity figures.
        sections: what was measured.
        results: the same figures as the hub lists them.
        origin: of the checkpoint; what it leaves open is taken from the card that is there.
    """
    path = folder / MODEL_CARD
    known = origin_of(path)
    given = origin or Origin()
    origin = Origin(given.base_model or known.base_model, given.license or known.license)
    write_atomically(path, model_card(manifest, sections, results, origin))
    return path


def origin_of(path: Path) -> Origin:
    """What a card's first lines say; nothing if there is no card, or none that can be read."""
    if not path.is_file():
        return Origin()
    try:
        data = ModelCard.load(path, ignore_metadata_errors=True).data
    except (ValueError, OSError):
        return Origin()
    base = data.base_model
    return Origin(base if isinstance(base, str) else None, data.license)


def model_card(
    manifest: Manifest,
    sections: Sequence[Section] = (),
    results: Sequence[EvalResult] = (),
    origin: Origin | None = None,
) -> str:
    """The card as Markdown, after the lines in YAML that the hub reads."""
    origin = origin or Origin()
    base = origin.base_model or _hub_id(manifest.backbone.name)
    title = f"{manifest.backbone.name} for phones"
    data = ModelCardData(
        base_model=base,
        eval_results=list(results) or None,
        library_name="edgeinfinite",
        license=origin.license,
        model_name=title if results else None,
        pipeline_tag="text-generation",
        tags=["edgeinfinite", manifest.backend, "long-context", "on-device"],
        # The hub lists it below its base model.
        base_model_relation="quantized" if base and manifest.quantization.quantized else None,
    )
    own = [
        Section("Run it", _RUN.format(extra=_extra(manifest))),
        Section("What isn't quantized", _unquantized(manifest)),
    ]
    parts = [own[0], *sections, own[1]]
    body = "\n\n".join(f"## {part.title}\n\n{part.body.strip()}" for part in parts)
    return f"---\n{data.to_yaml()}\n---\n\n# {title}\n\n{_facts(manifest)}\n\n{body}\n"


def _facts(manifest: Manifest) -> str:
    geometry = manifest.geometry
    formats = Counter(manifest.quantization.quantized.values())
    weights = ", ".join(f"{count} in {form}" for form, count in sorted(formats.items()))
    scorer, gate = manifest.scorer, manifest.gate
    rows = {
        "made from": f"{manifest.backbone.name}, {manifest.backbone.parameters:,} parameters",
        "back end": f"{manifest.backend}, {manifest.target}",
        "quantization": manifest.quantization.recipe,
        "weights": weights or "float32",
        "loss": "; ".join(told(manifest.parity)).removeprefix("loss ") or "as the checkpoint",
        "cache": f"{geometry.policy}, a window of {geometry.window_length} tokens, "
        f"{geometry.sink_length} sinks, segments of {geometry.segment_length}",
        "recall slots": f"{geometry.average_slots:,.0f} in an average layer, filled by "
        f"{scorer.source}"
        if geometry.most_slots and scorer
        else "none",
        "state": f"{state_bytes(manifest.state) / 1e6:.1f} MB for any length",
        "files": f"{sum(file.size for file in manifest.files.values()) / 1e6:,.1f} MB",
        "memory gate": gate.source if gate else "none",
        "checkpoint's sha256": manifest.backbone.weights_sha256,
        "made by": f"edgeinfinite {manifest.tools['edgeinfinite']}",
    }
    return "\n".join(["| | |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in rows.items())])


def _unquantized(manifest: Manifest) -> str:
    if not manifest.quantization.quantized:
        return "Nothing is: all weights are in float32."
    kinds = kinds_of(manifest.quantization.unquantized)
    if not kinds:
        return "Every weight is quantized."
    return f"{', '.join(kinds)}. `manifest.json` has the format of every weight."


def kinds_of(weights: Iterable[str]) -> list[str]:
    """Weights by kind with how many there are of each, as `` `self_attn.q_norm` (18) ``."""
    counts = Counter(map(kind_of, weights))
    return [f"`{kind}` ({count})" for kind, count in counts.items()]


def _hub_id(name: str) -> str | None:
    """The checkpoint's id on the hub, if its name is one."""
    known = _HUB_IDS.get(name) or name.partition("@")[0]  # without the revision
    return known if known.count("/") == 1 else None


def _extra(manifest: Manifest) -> str:
    return "runtime" if manifest.backend == "onnx" else "executorch"
