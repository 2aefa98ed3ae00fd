"""The artifact's `README.md`: what it is, what it loses, how to run it. No runtime reads it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from edgeinfinite.artifact.manifest import Manifest
from edgeinfinite.export.loss import told

MODEL_CARD = "README.md"


def write_model_card(folder: Path, manifest: Manifest) -> None:
    """Writes the card of a complete artifact.

    Args:
        folder: the artifact.
        manifest: its own, with the parity figures.
    """
    (folder / MODEL_CARD).write_text(model_card(manifest), encoding="utf-8")


def model_card(manifest: Manifest) -> str:
    """The card as Markdown."""
    geometry = manifest.geometry
    formats = Counter(manifest.quantization.quantized.values())
    weights = ", ".join(f"{count} in {form}" for form, count in sorted(formats.items()))
    rows = {
        "made from": f"{manifest.backbone.name}, {manifest.backbone.parameters:,} parameters",
        "back end": f"{manifest.backend}, {manifest.target}",
        "quantization": manifest.quantization.recipe,
        "weights": weights or "float32",
        "loss": "; ".join(told(manifest.parity)).removeprefix("loss ") or "as the checkpoint",
        "cache": f"{geometry.policy}, a window of {geometry.window_length} tokens, "
        f"{geometry.sink_length} sinks, segments of {geometry.segment_length}",
        "checkpoint's sha256": manifest.backbone.weights_sha256,
        "made by": f"edgeinfinite {manifest.tools['edgeinfinite']}",
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return (
        f"# {manifest.backbone.name} for phones\n\n| | |\n| --- | --- |\n{table}\n\n"
        "`edgeinfinite generate FOLDER --prompt-file TEXT` runs it, `edgeinfinite verify FOLDER` "
        "checks it. `manifest.json` has every figure.\n"
    )
