"""Options of memory gate training."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.configuration import FEATURE_MAPS, OPENINGS, check_choice
from edgeinfinite.training.gate.lengths import Lengths

LOSSES = ("cross-entropy", "distillation")
MEMORIES = ("own", "zero")
DTYPES = ("auto", "float32", "bfloat16")
DEFAULT_CACHE = Path("~/.cache/edgeinfinite/tokens").expanduser()
_TRANSFER_SAMPLES = 32
_SEGMENTS = 5
_PLACES = ("model", "data", "output", "token_cache", "plot")


@dataclass(frozen=True)
class GateOptions:
    """Options of one training run.

    Args:
        model: what `load_backbone` takes.
        data: text files, JSONL files or folders.
        output: the gate's file (safetensors); the checkpoint of an unfinished run lies beside it.
        geometry: S, N and W to train the gate for.
        loss: `cross-entropy` of the next token (the paper), or `distillation`: divergence from the
            same backbone with full attention; None takes distillation where a stretch fits the
            backbone's positions.
        feature_map: σ of a new gate, see `models.memory.feature_map`; `elu` is the paper's.
        opening: what decides how far the gate opens, see `models.memory.gate`; `constant` is the
            paper's.
        transfer_samples: stretches for a first stage, which fits each layer to full attention; None
            takes 32, or 0 when training continues from a gate.
        transfer_epochs: passes over these samples.
        samples: stretches of text to train on, each read from its beginning.
        segments: segments per stretch that read a memory, each an optimizer step; None takes 5, or
            with distillation as many as fit if that is fewer.
        memory: `zero` trains the control, whose memory always reads zero.
        learning_rate: peak rate of all parameters but g and c; it falls along a cosine to a tenth.
            None takes 0.0003 after a first stage or another run, else 0.001.
        opening_learning_rate: peak rate of g and c.
        start: a gate to continue from; None starts a new one with Ã = A_mem, blended in by g, whose
            r is D.
        held_out_samples: stretches of held-out documents, for the score.
        dtype: the backbone's; `auto` takes bfloat16 where the CPU has instructions for it.
        seed: decides everything random.
        pre_tokenizer: see `load_backbone`.
        token_cache: folder for tokenised texts.
        plot: picture of the loss by tokens (.png); None puts it beside the gate.
    """

    model: str
    data: Sequence[Path]
    output: Path
    geometry: Geometry = field(default_factory=Geometry)
    loss: str | None = None
    feature_map: str = "learned"
    opening: str = "place"
    transfer_samples: int | None = None
    transfer_epochs: int = 16
    samples: int = 10
    segments: int | None = None
    memory: str = "own"
    learning_rate: float | None = None
    opening_learning_rate: float = 0.05
    start: Path | None = None
    held_out_samples: int = 4
    dtype: str = "auto"
    seed: int = 0
    pre_tokenizer: str | None = None
    token_cache: Path = DEFAULT_CACHE
    plot: Path | None = None

    def __post_init__(self) -> None:
        counts = ("samples", "segments", "held_out_samples")
        for name in (*counts, "transfer_epochs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise EdgeInfiniteError(f"{name.replace('_', ' ')} must be at least 1")
        if self.transfer_samples is not None and self.transfer_samples < 0:
            raise EdgeInfiniteError("transfer samples must be a number from 0 on")
        for name in ("learning_rate", "opening_learning_rate"):
            rate = getattr(self, name)
            if rate is not None and not 0 <= rate < math.inf:
                raise EdgeInfiniteError(f"{name.replace('_', ' ')} must be a number from 0 on")
        for name, known in {
            "feature_map": FEATURE_MAPS,
            "opening": OPENINGS,
            "loss": LOSSES,
            "memory": MEMORIES,
            "dtype": DTYPES,
        }.items():
            if getattr(self, name) is not None:
                check_choice(name.replace("_", " "), getattr(self, name), known)

    def for_backbone(self, positions: int) -> GateOptions:
        """The options with None replaced in `loss` and `segments`.

        Args:
            positions: how many the backbone was trained on.
        """
        fitting, loss, segments = self.fitting(positions), self.loss, self.segments
        if loss is None:
            loss = "distillation" if fitting >= (segments or 1) else "cross-entropy"
        if segments is None:
            fits = loss == "distillation" and fitting > 0
            segments = min(_SEGMENTS, fitting) if fits else _SEGMENTS
        return replace(self, loss=loss, segments=segments)

    def fitting(self, positions: int) -> int:
        """Most memory-reading segments of a stretch within `positions`; 0 or less if none fits."""
        return (positions + 1 - self.lengths.tokens(0)) // self.geometry.segment_length

    @property
    def passes(self) -> int:
        """`segments`, after `for_backbone` has replaced None."""
        assert self.segments is not None
        return self.segments

    @property
    def transfers(self) -> int:
        """Number of stretches in the first stage."""
        if self.transfer_samples is not None:
            return self.transfer_samples
        return _TRANSFER_SAMPLES if self.start is None else 0

    @property
    def rates(self) -> tuple[float, float]:
        """Learning rates: of all parameters but g and c, then of g and c."""
        begun = self.transfers > 0 or self.start is not None
        rate = (3e-4 if begun else 1e-3) if self.learning_rate is None else self.learning_rate
        return rate, self.opening_learning_rate

    @property
    def lengths(self) -> Lengths:
        """How a stretch is cut."""
        return Lengths(self.geometry.sink_length, self.geometry.segment_length)

    def card(self) -> dict[str, Any]:
        """What the gate's file says about its training, without any path of the machine."""
        fields = {name: value for name, value in asdict(self).items() if name not in _PLACES}
        fields["geometry"] = self.geometry.to_dict()
        if self.start is not None:
            fields["start"] = self.start.name
        return dict(json.loads(json.dumps(fields)))

    def identity(self) -> str:
        """Identifies the options that must not change when an interrupted run resumes."""
        data = sorted(str(path.absolute()) for path in self.data)
        return json.dumps(self.card() | {"model": self.model, "data": data}, sort_keys=True)
