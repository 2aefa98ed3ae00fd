"""The options of an export. No torch: the command line imports this before torch is loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.socs import QNN_HTP, SOCS, soc_named
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.geometry_options import GeometryOptions


@dataclass(frozen=True)
class QuantizationOptions:
    """What a user may ask for beside a recipe.

    Args:
        max_mb: of the whole artifact; None for the recipe's own formats.
        max_read_mb: of weights that decoding a token may read; None for what keeps 0.95 of plain
            int4's speed under `max_mb`, and for no limit under `max_loss`.
        max_loss: nats a token that the weights may lose, as measured by second order.
        calibrate: a text to scale and choose by, or `default`; None does neither unless a size or
            a loss is asked for.
        report: rows of `quantize-report`, to be read and gone on with.

    Raises:
        EdgeInfiniteError: options exclude each other.
    """

    max_mb: float | None = None
    max_read_mb: float | None = None
    max_loss: float | None = None
    calibrate: str | None = None
    report: Path | None = None

    def __post_init__(self) -> None:
        if self.max_mb is not None and self.max_loss is not None:
            raise EdgeInfiniteError("--max-mb and --max-loss exclude each other; leave one out")
        if self.max_read_mb is not None and self.max_mb is None:
            raise EdgeInfiniteError("--max-read-mb goes with --max-mb; give both")

    @property
    def calibrates(self) -> bool:
        """Whether weights are rounded, or formats chosen, by what a text does to them."""
        asked = (self.max_mb, self.max_read_mb, self.max_loss, self.calibrate)
        return any(option is not None for option in asked)


@dataclass(frozen=True)
class ExportOptions:
    """What to export.

    Args:
        model: what `load_backbone` takes.
        pre_tokenizer: see `load_backbone`.
        chat_template: a Jinja file; None for the checkpoint's own, if it has one.
        output: the artifact's folder; must not exist, be empty, or be an artifact to replace. None
            for a plan alone.
        backend: one of `artifact.backends.BACKENDS`.
        target: `cpu` or an accelerator that the back end knows.
        soc: the chip to compile for, of `artifact.socs.SOCS`; None for `cpu`.
        quantize: a recipe's name.
        geometry, gate, scorer: see `ModelOptions`.
        cache_type: of the KV cache's numbers; None as in `ModelOptions`, of what the back end has.
        quantization: a size or a loss to choose formats for, a text to do it by.

    Raises:
        EdgeInfiniteError: the chip is missing, unknown or of no use, or weights that aren't int4
            are to have a size or a loss.
    """

    model: str
    output: Path | None = None
    backend: str = "onnx"
    target: str = "cpu"
    soc: str | None = None
    quantize: str = "none"
    gate: str | None = None
    geometry: Geometry | GeometryOptions = field(default_factory=GeometryOptions)
    scorer: str | None = None
    cache_type: str | None = None
    quantization: QuantizationOptions = field(default_factory=QuantizationOptions)
    pre_tokenizer: str | None = None
    chat_template: Path | None = None

    def __post_init__(self) -> None:
        if self.quantization.calibrates and self.quantize != "int4":
            raise EdgeInfiniteError(
                "--max-mb, --max-loss and --calibrate are for --quantize int4, which chooses "
                "formats"
            )
        if self.soc is not None:
            soc_named(self.soc)
        if (self.soc is not None) != (self.target == QNN_HTP):
            raise EdgeInfiniteError(
                f"--target {QNN_HTP} compiles for one chip, and --soc names it: give both, such as "
                f"--target {QNN_HTP} --soc sm8650 (one of {', '.join(SOCS)})"
            )
