"""The options of `edgeinfinite export`, as a configuration of transformers' exporters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase
from transformers.exporters import ExportConfigMixin

from edgeinfinite.export.hf.registration import FORMAT
from edgeinfinite.export.options import ExportOptions, QuantizationOptions
from edgeinfinite.models.geometry_options import GeometryOptions


@dataclass
class EdgeInfiniteExportConfig(ExportConfigMixin):
    """What to export. Every option but the first two means what it means for `edgeinfinite export`.

    Args:
        export_format: the name that transformers finds this by.
        tokenizer: the model's, or what `AutoTokenizer` takes; None for the one of the checkpoint
            that the model was loaded from.
        backend, target, soc, quantize, gate, scorer, cache_type: see `ExportOptions`.
        policy, segment_length, sink_length, window_length, recall_slots, state_mb: see
            `GeometryOptions`.
        max_mb, max_read_mb, max_loss, calibrate, report: see `QuantizationOptions`.
    """

    export_format: str = FORMAT
    tokenizer: PreTrainedTokenizerBase | str | None = None
    backend: str = "onnx"
    target: str = "cpu"
    soc: str | None = None
    quantize: str = "none"
    gate: str | None = None
    scorer: str | None = None
    cache_type: str | None = None
    policy: str | None = None
    segment_length: int | None = None
    sink_length: int | None = None
    window_length: int | None = None
    recall_slots: int | Sequence[int] | str | None = None
    state_mb: float | None = None
    max_mb: float | None = None
    max_read_mb: float | None = None
    max_loss: float | None = None
    calibrate: str | None = None
    report: str | Path | None = None

    def options(self, model: Path, output: Path) -> ExportOptions:
        """What `export_artifact` takes.

        Raises:
            EdgeInfiniteError: an option is out of range, or they don't go together.
        """
        given = dict(self)
        if isinstance(self.recall_slots, list):  # as JSON has it
            given["recall_slots"] = tuple(self.recall_slots)
        if self.report is not None:
            given["report"] = Path(self.report)
        return ExportOptions(
            model=str(model),
            output=output,
            geometry=GeometryOptions(**_of(GeometryOptions, given)),
            quantization=QuantizationOptions(**_of(QuantizationOptions, given)),
            **_of(ExportOptions, given),
        )

    def to_json_string(self) -> str:
        """What goes into `export.json`: no tokenizer, and files by their names alone."""
        shown = {name: value for name, value in self if name != "tokenizer"}
        for name in ("gate", "scorer", "calibrate", "report"):
            if shown[name] is not None:
                shown[name] = Path(shown[name]).name
        return json.dumps(shown, indent=2, sort_keys=True)


def _of(kind: type, given: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that a class has."""
    return {field.name: given[field.name] for field in fields(kind) if field.name in given}
