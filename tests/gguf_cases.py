"""Tiny GGUF files, each with something changed, whose logits llama.cpp has said.

`gguf/record_logits.py` writes them to gguf_logits.npz, `gguf/test_logits.py` compares with those,
`gguf/test_llama_cpp.py` with llama.cpp itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tiny_gguf

SHORT, LONG, CONTEXT = 160, 4200, 8192
LIMIT = 0.01
"""Relative error of logits; llama.cpp's GELU goes through half precision, the rest is float32."""


@dataclass(frozen=True)
class Case:
    """One file.

    Args:
        label: unique.
        name: of `tiny_gguf.ARCHITECTURES`.
        keys, more: see `tiny_gguf.write`.
        tokens: how many are read.
        context: llama.cpp's, which chooses LongRoPE's factors by it; transformers by the tokens.
    """

    label: str
    name: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, np.ndarray] = field(default_factory=dict)
    tokens: int = SHORT
    context: int = CONTEXT

    @property
    def ids(self) -> np.ndarray:
        return np.random.default_rng(1).integers(3, tiny_gguf.VOCABULARY, self.tokens)

    @property
    def places(self) -> list[int]:
        """The tokens after which logits are compared."""
        asked = [0, 64, 4096, self.tokens - 1]
        return sorted({place for place in asked if place < self.tokens})

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.label.replace(' ', '-')}.gguf"
        return tiny_gguf.write(path, self.name, keys=self.keys, more=self.more)


def _biases(name: str, *parts: str) -> dict[str, np.ndarray]:
    shapes = tiny_gguf.shapes_of(name)
    return {
        f"blk.{layer}.{part}.bias": tiny_gguf.drawn(
            f"blk.{layer}.{part}.bias", shapes[f"blk.{layer}.{part}.weight"][:1]
        )
        for layer in range(tiny_gguf.layers_of(name))
        for part in parts
        if f"blk.{layer}.{part}.weight" in shapes  # of layers that attend
    }


def _heads(name: str, head: int) -> dict[str, np.ndarray]:
    """Q, K, V and output of four heads and two KV heads of another size."""
    wide = {"attn_q": 4 * head, "attn_k": 2 * head, "attn_v": 2 * head}
    found = {}
    for layer in range(tiny_gguf.layers_of(name)):
        for part, rows in wide.items():
            tensor = f"blk.{layer}.{part}.weight"
            found[tensor] = tiny_gguf.drawn(tensor, (rows, tiny_gguf.WIDTH))
        tensor = f"blk.{layer}.attn_output.weight"
        found[tensor] = tiny_gguf.drawn(tensor, (tiny_gguf.WIDTH, 4 * head))
    return found


def _convolutions(kernel: int) -> dict[str, np.ndarray]:
    """LFM2's kernels, of another length."""
    names = [name for name in tiny_gguf.shapes_of("lfm2") if name.endswith("shortconv.conv.weight")]
    return {name: tiny_gguf.drawn(name, (tiny_gguf.WIDTH, kernel)) for name in names}


def _factors(count: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(2)
    return {
        "rope_factors_short.weight": np.float32(random.uniform(1, 3, count)),
        "rope_factors_long.weight": np.float32(random.uniform(1, 8, count)),
    }


def llama3_factors(head: int, base: float, factor: float, original: int) -> np.ndarray:
    """The divisors of Llama 3's rule, as a converter writes them: `[head / 2]` float32."""
    turns = original * base ** (-np.arange(0, head, 2) / head) / (2 * np.pi)
    smooth = np.clip((turns - 1) / 3, 0, 1)
    return np.float32(1 / ((1 - smooth) / factor + smooth))


QKV = ("attn_q", "attn_k", "attn_v")
LINEAR = {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}
YARN = {
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": 4.0,
    "rope.scaling.original_context_length": 2048,
}
SHORT_YARN = YARN | {"rope.scaling.original_context_length": 64}
FREQS = {tiny_gguf.ROPE_FREQS: np.float32([1, 1, 1, 1.5, 4, 8, 8, 8])}
LONGROPE = {
    "rope.scaling.type": "longrope",
    "rope.scaling.original_context_length": 2048,
    "rope.scaling.attn_factor": 1.19,
}
SHORT_LONGROPE = LONGROPE | {"rope.scaling.original_context_length": 100}

BASES = tuple(Case(f"{name} base", name) for name in tiny_gguf.ARCHITECTURES)

PLAIN = tuple(name for name in tiny_gguf.ARCHITECTURES if name not in tiny_gguf.LATER)
"""Those of which every scaling of RoPE is tried."""

ROPES = (
    *(Case(f"{name} linear", name, LINEAR) for name in PLAIN),
    *(Case(f"{name} yarn", name, SHORT_YARN) for name in PLAIN),
    Case("llama old linear", "llama", {"rope.scale_linear": 4.0}),
    Case("llama factor without a type", "llama", {"rope.scaling.factor": 4.0}),
    Case("llama type none", "llama", LINEAR | {"rope.scaling.type": "none"}),
    Case("llama factor below 1", "llama", LINEAR | {"rope.scaling.factor": 0.5}),
    Case("llama other base", "llama", {"rope.freq_base": 500.0}),
    Case("llama attention factor", "llama", {"rope.scaling.attn_factor": 1.3}),
    Case("llama yarn attention factor", "llama", SHORT_YARN | {"rope.scaling.attn_factor": 1.3}),
    Case("llama freqs", "llama", more=FREQS),
    Case("llama freqs and yarn", "llama", SHORT_YARN, FREQS),
    Case("mixtral freqs", "mixtral", more=FREQS),
    Case("granite freqs", "granite", more=FREQS),
    Case("llama longrope", "llama", SHORT_LONGROPE, _factors(8)),
    Case(
        "phi3 short factors",
        "phi3",
        LONGROPE | {"rope.scaling.original_context_length": 256},
        _factors(8),
        context=256,  # llama.cpp's contexts are multiples of 256
    ),
    Case("phi3 long factors", "phi3", SHORT_LONGROPE, _factors(8)),
    Case("phi3 partial", "phi3", {"rope.dimension_count": 12}),
    Case(
        "phi3 partial and longrope",
        "phi3",
        SHORT_LONGROPE | {"rope.dimension_count": 12},
        _factors(6),
    ),
    Case("nemotron partial", "nemotron", {"rope.dimension_count": 8}),
    Case("gemma3 second base", "gemma3", {"rope.freq_base_swa": 500.0}),
    Case("gemma3 attention factor", "gemma3", {"rope.scaling.attn_factor": 1.3}),
    Case(
        "mistral3 yarn settings",
        "mistral3",
        SHORT_YARN
        | {
            "rope.scaling.yarn_beta_fast": 8.0,
            "rope.scaling.yarn_beta_slow": 2.0,
            "rope.scaling.yarn_log_multiplier": 0.5,
        },
    ),
    Case("olmo2 window and yarn", "olmo2", SHORT_YARN | {"attention.sliding_window": 40}),
)

OTHERS = (
    Case("llama qkv bias", "llama", more=_biases("llama", *QKV)),
    Case("llama output bias", "llama", more=_biases("llama", "attn_output")),
    Case("llama mlp bias", "llama", more=_biases("llama", "ffn_up", "ffn_gate", "ffn_down")),
    Case("granite biases", "granite", more=_biases("granite", *QKV, "attn_output", "ffn_up")),
    *(
        Case(f"{name} qkv bias", name, more=_biases(name, *QKV))
        for name in ("qwen3", "qwen3moe", "gemma2", "gemma3", "smollm3", "olmo2")
    ),
    Case(
        "llama head", "llama", more={"output.weight": tiny_gguf.drawn("output.weight", (320, 64))}
    ),
    *(
        Case(
            f"{name} wide heads",
            name,
            {"attention.key_length": 32, "attention.value_length": 32},
            _heads(name, 32),
        )
        for name in ("llama", "mixtral", "mistral3", "granite", "smollm3")
    ),
    Case("gemma2 final cap", "gemma2", {"final_logit_softcapping": 2.0}),
    Case("gemma2 attention cap", "gemma2", {"attn_logit_softcapping": 2.0}),
    Case("gemma2 window", "gemma2", {"attention.sliding_window": 40}),
    Case("gemma2 default window", "gemma2", {"attention.sliding_window": None}),
    Case("gemma3 final cap", "gemma3", {"final_logit_softcapping": 2.0}),
    Case("gemma3 window", "gemma3", {"attention.sliding_window": 40}),
    Case("gemma3 no window", "gemma3", {"attention.sliding_window": None}),
    Case("gemma3 pattern", "gemma3", {"attention.sliding_window_pattern": 3}),
    Case(
        "gemma3 listed pattern",
        "gemma3",
        {"attention.sliding_window_pattern": [True, False, False, True, True, False]},
    ),
    Case("olmo2 window", "olmo2", {"attention.sliding_window": 40}),
    *(
        Case(f"granite {key}", "granite", {key: 0.7})
        for key in ("logit_scale", "residual_scale", "embedding_scale", "attention.scale")
    ),
    Case(
        "granite no scales",
        "granite",
        {"residual_scale": None, "embedding_scale": None, "attention.scale": None},
    ),
    Case("lfm2 epsilon", "lfm2", {"attention.layer_norm_rms_epsilon": 0.1}),
    Case("lfm2 head", "lfm2", more={"output.weight": tiny_gguf.drawn("output.weight", (320, 64))}),
    Case("lfm2 longer convolution", "lfm2", {"shortconv.l_cache": 4}, _convolutions(4)),
    Case("mixtral one expert", "mixtral", {"expert_used_count": 1}),
    Case("qwen3moe default width", "qwen3moe", {"expert_feed_forward_length": None}),
    Case("llama window that isn't used", "llama", {"attention.sliding_window": 40}),
    Case("phi3 window that isn't used", "phi3", {"attention.sliding_window": 40}),
    Case("llama epsilon", "llama", {"attention.layer_norm_rms_epsilon": 0.1}),
    Case("llama heads by layer", "llama", {"attention.head_count_kv": [2, 2]}),
    Case("llama finetuned", "llama", {"rope.scaling.finetuned": True}),
)

NO_SCALES = dict.fromkeys(("logit_scale", "residual_scale", "embedding_scale", "attention.scale"))
ROTARY = {"rope.scaling.finetuned": True}
HYBRIDS = (
    Case("granitehybrid rotary", "granitehybrid", ROTARY),
    Case("granitehybrid rotary yarn", "granitehybrid", ROTARY | SHORT_YARN),
    Case("granitehybrid rotary by default", "granitehybrid", {"rope.scaling.finetuned": None}),
    Case("granitehybrid biases", "granitehybrid", more=_biases("granitehybrid", *QKV)),
    Case("granitehybrid no scales", "granitehybrid", NO_SCALES),
    Case("granitehybrid-experts one", "granitehybrid-experts", {"expert_used_count": 1}),
    Case("falcon-h1 yarn", "falcon-h1", SHORT_YARN),
    Case("falcon-h1 biases", "falcon-h1", more=_biases("falcon-h1", *QKV, "ffn_gate", "ffn_down")),
)
"""Granite 4 H and Falcon-H1."""

GEMMAS = (
    Case("gemma3n second base", "gemma3n", {"rope.freq_base_swa": 500.0}),
    Case("gemma3n yarn", "gemma3n", SHORT_YARN),
    Case("gemma4 second base", "gemma4", {"rope.freq_base_swa": 500.0}),
    Case("gemma4 window", "gemma4", {"attention.sliding_window": 40}),
    Case("gemma4 no cap", "gemma4", {"final_logit_softcapping": 0.0}),
    Case("gemma4 default cap", "gemma4", {"final_logit_softcapping": None}),
    Case("gemma4 whole rope", "gemma4", more={tiny_gguf.ROPE_FREQS: np.ones(16, np.float32)}),
)
"""Gemma 3n and 4."""

SPARSE = (
    Case("olmoe yarn", "olmoe", SHORT_YARN),
    Case("olmoe biases", "olmoe", more=_biases("olmoe", *QKV)),
    Case("granitemoe longrope", "granitemoe", SHORT_LONGROPE, _factors(8)),
    Case("granitemoe one expert", "granitemoe", {"expert_used_count": 1}),
    Case("gpt-oss yarn", "gpt-oss", SHORT_YARN),
    Case("gpt-oss window", "gpt-oss", {"attention.sliding_window": 40}),
    Case("gpt-oss pattern", "gpt-oss", {"attention.sliding_window_pattern": 4}),
    Case("lfm2moe all experts", "lfm2moe", {"expert_used_count": 4}),
)
"""Those that are only known with experts."""

DELTAS = (
    Case("qwen35 by interval", "qwen35", {"attention.recurrent_layers": None}),
    Case("qwen35 wide sections", "qwen35", {"rope.dimension_sections": [11, 11, 10, 0]}),
    Case("qwen35 yarn", "qwen35", SHORT_YARN),
    Case("qwen35 biases", "qwen35", more=_biases("qwen35", *QKV)),
)
"""Qwen3.5."""

FAMILIES = (*HYBRIDS, *GEMMAS, *SPARSE, *DELTAS)

LLAMA3 = {tiny_gguf.ROPE_FREQS: llama3_factors(16, 10000.0, 8.0, 2048)}
LONG_CASES = (
    *(Case(f"{name} long", name, tokens=LONG) for name in tiny_gguf.ARCHITECTURES),
    *(
        Case(f"{name} long {kind}", name, keys, tokens=LONG)
        for name in PLAIN
        for kind, keys in (("linear", LINEAR), ("yarn", YARN))
    ),
    *(
        Case(f"{name} long freqs", name, more=LLAMA3, tokens=LONG)
        for name in ("llama", "mixtral", "mistral3", "granite")
    ),
    *(
        Case(f"{name} long longrope", name, LONGROPE, _factors(8), tokens=LONG)
        for name in ("llama", "mixtral", "mistral3", "granite", "phi3")
    ),
)
"""Positions 0, 64, 4,096 and beyond the original context of 2,048."""

_LONG_RECORDED = ("llama long freqs", "qwen2 long yarn", "gemma3 long linear", "phi3 long longrope")
RECORDED = (
    *BASES,
    *ROPES,
    *OTHERS,
    *FAMILIES,
    *(case for case in LONG_CASES if case.label in _LONG_RECORDED),
)
EVERY = (*BASES, *ROPES, *OTHERS, *FAMILIES, *LONG_CASES)
