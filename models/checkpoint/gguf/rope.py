"""RoPE as a GGUF file describes it, in the words of transformers' configuration.

llama.cpp decides what the keys mean. An angle is position · base^(-2i/n) / factor_i · scale, where
YaRN scales only the slow ones; cos and sin are multiplied by `attention`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgeinfinite.models.checkpoint.gguf.header import Header

_TYPES = ("none", "linear", "yarn", "longrope")
_BETA_FAST, _BETA_SLOW = 32.0, 1.0
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
_LLAMA3_POSITIONS = 8192
_AS_EXACT = 1e-6
"""Relative; float32 rounds each of the few operations behind a factor."""


@dataclass(frozen=True)
class Rope:
    """How the layers of one type turn queries and keys.

    Args:
        base: of the angles.
        head: dimensions of a head.
        turned: n, how many of them are turned.
        factor: 1 / scale.
        yarn: (beta_fast, beta_slow) if YaRN mixes scaled and plain angles.
        attention: the factor of cos and sin.
        original: positions before scaling.
        positions: positions that the model takes.
        unturned: of so many angles, the last ones, transformers' proportional RoPE has none; None:
            it isn't proportional.
        short, long: each angle's divisor for texts up to `original` and for longer ones; None: 1.
    """

    base: float
    head: int
    turned: int
    factor: float
    yarn: tuple[float, float] | None
    attention: float
    original: int
    positions: int
    unturned: int | None = None
    short: np.ndarray | None = None
    long: np.ndarray | None = None

    def frequencies(self, factors: np.ndarray | None) -> np.ndarray:
        """Angles at position 1, `[n / 2]` float64."""
        plain = self._plain()
        if self.unturned:
            plain[-self.unturned :] = 0
        if factors is not None:
            plain = plain / factors.astype(np.float64)
        if self.yarn is None:
            return plain / self.factor
        low, high = (self._corrected(beta) for beta in self.yarn)
        low, high = max(0, math.floor(low)), min(self.turned - 1, math.ceil(high))
        ramp = (np.arange(len(plain)) - low) / max(0.001, high - low)
        kept = 1 - np.clip(ramp, 0, 1)
        return plain / self.factor * (1 - kept) + plain * kept

    def parameters(self, *, by_factors: bool = False) -> dict[str, Any]:
        """transformers' `rope_parameters` with exactly these frequencies.

        Args:
            by_factors: the configuration knows scaling by `longrope` only.
        """
        named = self._named()
        if named is None or (by_factors and named["rope_type"] != "default"):
            named = self._by_factors()
        return {"rope_theta": self.base, **named}

    @property
    def share(self) -> float:
        """The turned part of a head, such that transformers' rounding finds it again."""
        share = self.turned / self.head
        return share if int(self.head * share) == self.turned else math.nextafter(share, 1)

    def _named(self) -> dict[str, Any] | None:
        """The scaling by its own name; None if it has none, or none without a warning."""
        if self.unturned is not None:
            angles = self.head // 2
            share = (angles - self.unturned) / angles
            share += 1e-9 if int(share * self.head // 2) < angles - self.unturned else 0
            return {"rope_type": "proportional", "partial_rotary_factor": share}
        if self.short is not None or self.long is not None:
            return self._llama3()
        if self.factor < 1:
            return None
        if self.yarn and self.factor != 1:
            return {
                "rope_type": "yarn",
                "factor": self.factor,
                "attention_factor": self.attention,
                "beta_fast": self.yarn[0],
                "beta_slow": self.yarn[1],
                "original_max_position_embeddings": self.original,
            }
        if self.attention != 1:
            return None
        linear = {"rope_type": "linear", "factor": self.factor}
        return linear if self.factor != 1 else {"rope_type": "default"}

    def _by_factors(self) -> dict[str, Any]:
        """A divisor for each angle, which can express every scaling."""
        short, long = (self._divisors(factors) for factors in (self.short, self.long))
        # If both are one, it doesn't matter where short texts end.
        original = self.positions if short == long else self.original
        return {
            "rope_type": "longrope",
            "short_factor": short,
            "long_factor": long,
            "factor": 1.0,
            "attention_factor": self.attention,
            "original_max_position_embeddings": original,
        }

    def _llama3(self) -> dict[str, Any] | None:
        """The rule behind Llama 3's factors, if its usual constants give these."""
        if self.short is None or self.short is not self.long:
            return None
        if self.yarn or self.factor != 1 or self.attention != 1:
            return None
        most = float(self.short.max())
        low, high = _LLAMA3.values()
        for original in dict.fromkeys((_LLAMA3_POSITIONS, self.original)):
            turns = original * self._plain() / (2 * math.pi)
            smooth = np.clip((turns - low) / (high - low), 0, 1)
            if np.allclose(self.short, 1 / ((1 - smooth) / most + smooth), rtol=_AS_EXACT, atol=0):
                positions = {"original_max_position_embeddings": original}
                return {"rope_type": "llama3", "factor": most, **_LLAMA3, **positions}
        return None

    def _divisors(self, factors: np.ndarray | None) -> list[float]:
        return [float(value) for value in self._plain() / self.frequencies(factors)]

    def _plain(self) -> np.ndarray:
        return np.asarray(self.base ** (-np.arange(0, self.turned, 2) / self.turned))

    def _corrected(self, beta: float) -> float:
        """The dimension that turns `beta` times over the original positions."""
        turns = math.log(self.original / (beta * 2 * math.pi))
        return self.turned * turns / (2 * math.log(self.base))


def read_rope(header: Header, head: int, positions: int, tensors: Mapping[str, np.ndarray]) -> Rope:
    """The RoPE of a file's (full) layers.

    Args:
        header: of the file.
        head: dimensions of a head.
        positions: that the model takes.
        tensors: `rope_freqs.weight` and the like, by name, `[n / 2]` float32.

    Raises:
        EdgeInfiniteError: a key or a tensor that can't be expressed, by its name.
    """
    base = header.real("rope.freq_base", 10000.0)
    if base <= 1:
        raise header.refuse("rope.freq_base", f"is {base}")
    kind = header.value("rope.scaling.type", "linear")
    if kind not in _TYPES:
        raise header.refuse("rope.scaling.type", f"is {kind!r}; {', '.join(_TYPES)} are known")
    factor = _factor(header) if kind != "none" else _passed_over(header)
    original = header.whole("rope.scaling.original_context_length", positions) or positions
    yarn, attention = _yarn(header, kind == "yarn", factor)
    attention *= header.real("rope.scaling.attn_factor", 1.0)
    if attention <= 0:
        raise header.refuse("rope.scaling.attn_factor", f"is {attention}")
    turned = _turned(header, head)
    if header.architecture == "granite" and not header.flag("rope.scaling.finetuned", True):
        raise header.refuse("rope.scaling.finetuned", "is false: Granite without RoPE")
    header.value("rope.scaling.finetuned", False)  # elsewhere a note
    sections = header.value("rope.dimension_sections", [0])
    if not header.row.sections and (any(sections) if isinstance(sections, list) else sections):
        raise header.refuse("rope.dimension_sections", "isn't 0: positions of images")
    short, long = _tensors(header, turned, tensors)
    rope = Rope(base, head, turned, factor, yarn, attention, original, positions)
    return replace(rope, short=short, long=long)


def _factor(header: Header) -> float:
    old = header.real("rope.scale_linear", 0.0)
    factor = header.real("rope.scaling.factor", old)
    if factor < 0:
        raise header.refuse("rope.scaling.factor", f"is {factor}")
    return factor or 1.0


def _passed_over(header: Header) -> float:
    """Of scaling type `none` the factor means nothing."""
    _factor(header)
    return 1.0


def _turned(header: Header, head: int) -> int:
    turned = header.positive("rope.dimension_count", head)
    if turned > head or turned % 2:
        raise header.refuse("rope.dimension_count", f"is {turned}, a head has {head} dimensions")
    if turned < head and not header.row.partial:
        raise header.refuse(
            "rope.dimension_count",
            f"is {turned}, but {header.architecture} turns whole heads, of {head} dimensions",
        )
    return turned


def _yarn(header: Header, is_yarn: bool, factor: float) -> tuple[tuple[float, float] | None, float]:
    """YaRN's betas, if it is used, and its factor of cos and sin."""
    fast = header.real("rope.scaling.yarn_beta_fast", _BETA_FAST)
    slow = header.real("rope.scaling.yarn_beta_slow", _BETA_SLOW)
    log = header.real("rope.scaling.yarn_log_multiplier", 0.0)
    extrapolated = header.real("rope.scaling.yarn_ext_factor", 1.0)
    attention = header.real("rope.scaling.yarn_attn_factor", 1.0)
    if not is_yarn:
        return None, 1.0
    if not header.row.yarn_keys:
        given = {
            "beta_fast": fast - _BETA_FAST,
            "beta_slow": slow - _BETA_SLOW,
            "log_multiplier": log,
        }
        for name, difference in given.items():
            if difference:
                raise header.refuse(
                    f"rope.scaling.yarn_{name}",
                    f"isn't YaRN's own, and llama.cpp doesn't read it for {header.architecture}",
                )
    if extrapolated != 1:
        raise header.refuse("rope.scaling.yarn_ext_factor", f"is {extrapolated}, only 1 is known")
    found = _growth(factor, 1.0) / (_growth(factor, log) if log else 1.0)
    if attention != 1 and not math.isclose(attention, found, rel_tol=1e-4):
        raise header.refuse(
            "rope.scaling.yarn_attn_factor",
            f"is {attention}; llama.cpp computes {found:.6g} from the factor",
        )
    return (fast, slow), found


def _growth(factor: float, by: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * by * math.log(factor) + 1


def _tensors(
    header: Header, turned: int, tensors: Mapping[str, np.ndarray]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Each angle's divisors for short and for long texts."""
    for name, values in tensors.items():
        if values.shape != (turned // 2,) or not (np.isfinite(values).all() and values.min() > 0):
            raise header.refuse(
                "rope.dimension_count",
                f"is {turned}: its tensor {name} isn't {turned // 2} positive numbers",
            )
    freqs = tensors.get("rope_freqs.weight")
    if freqs is not None:
        return freqs, freqs
    return tensors.get("rope_factors_short.weight"), tensors.get("rope_factors_long.weight")


def rope_tensor_names(header: Header) -> Sequence[str]:
    """The tensors of RoPE's divisors that this file may have."""
    row, kind = header.row, header.value("rope.scaling.type", "linear")
    factors = ("rope_factors_short.weight", "rope_factors_long.weight")
    if "rope_freqs" not in row.rope_tensors:
        return factors if row.rope_tensors else ()
    return factors if kind == "longrope" else ("rope_freqs.weight",)
