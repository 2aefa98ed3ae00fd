"""The tested architectures: one list for attaching, both back ends, and docs/models.md.

The tests build each as a tiny random model of two layers (`tiny.tiny_family`) with what makes the
family special. `test_architecture_table.py` compares the page with `listing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_SCALED = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
_LONG = {
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "partial_rotary_factor": 0.5,
    "short_factor": [1.0, 1.5],
    "long_factor": [2.0, 4.0],
    "original_max_position_embeddings": 96,
}
_MIXED = ["sliding_attention", "full_attention"]


@dataclass(frozen=True)
class Architecture:
    """One line of the list.

    Args:
        family: as transformers' classes begin: `Llama` of `LlamaForCausalLM`.
        special: what sets it apart, for the list.
        settings: of its configuration, beside those of `tiny_family`.
        windows: the sliding window of each of the two layers, 0 for full attention.
    """

    family: str
    special: str
    settings: Mapping[str, object] = field(default_factory=dict)
    windows: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", {"num_hidden_layers": 2, **self.settings})

    @property
    def one_layer(self) -> Mapping[str, object]:
        """Settings for a model of one layer, where the layers are alike; else none."""
        alike = not any(isinstance(value, list) for value in self.settings.values())
        return {"num_hidden_layers": 1} if alike else {}


ARCHITECTURES = {
    "Llama 2": Architecture("Llama", "a KV head for each query head", {"num_key_value_heads": 4}),
    "Llama 3": Architecture("Llama", "grouped queries", {"rope_theta": 500_000.0}),
    "Llama 3.2": Architecture(
        "Llama", "scaled RoPE, tied", {"rope_parameters": _SCALED, "tie_word_embeddings": True}
    ),
    "Mistral": Architecture("Mistral", "grouped queries", {"sliding_window": None}),
    "Mistral 0.1": Architecture(
        "Mistral", "a window in every layer", {"sliding_window": 7}, windows=(7, 7)
    ),
    "Qwen2, Qwen2.5": Architecture(
        "Qwen2", "biases of Q, K, V; tied", {"tie_word_embeddings": True}
    ),
    "Qwen3": Architecture("Qwen3", "norms of Q and K", {"tie_word_embeddings": True}),
    "SmolLM3": Architecture("SmolLM3", "layers without RoPE", {"no_rope_layers": [1, 0]}),
    "Phi-3": Architecture("Phi3", "fused Q, K, V; a window", {"sliding_window": 7}, windows=(7, 7)),
    "Phi-4-mini": Architecture(
        "Phi3",
        "fused Q, K, V; partial rotary, LongRoPE; tied",
        {"rope_parameters": _LONG, "sliding_window": None, "tie_word_embeddings": True},
    ),
    "Granite": Architecture(
        "Granite",
        "multipliers of embedding, attention, residual and logits",
        {
            "logits_scaling": 3.0,
            "attention_multiplier": 0.3,
            "embedding_multiplier": 2.0,
            "residual_multiplier": 0.5,
        },
    ),
    "Granite with windows": Architecture(
        "GraniteSWA",
        "windows, and learned sinks beside the scores",
        {"sliding_window": 7, "layer_types": _MIXED, "attention_multiplier": 0.3},
        windows=(7, 0),
    ),
    "OLMo 2": Architecture("Olmo2", "norms after attention and MLP, norms of Q and K"),
    "Gemma 2": Architecture(
        "Gemma2",
        "windows in every second layer, softcap",
        {"sliding_window": 7, "attn_logit_softcapping": 2.0, "layer_types": _MIXED},
        windows=(7, 0),
    ),
    "Gemma 3": Architecture(
        "Gemma3",
        "windows in most layers, two sets of angles",
        {"sliding_window": 7, "layer_types": _MIXED},
        windows=(7, 0),
    ),
    "ERNIE 4.5": Architecture("Ernie4_5", "RoPE turns neighbouring dimensions"),
    "GLM-4": Architecture(
        "Glm4", "neighbouring dimensions, partial rotary; norms after attention and MLP"
    ),
    "Helium": Architecture("Helium", "neighbouring dimensions"),
    "Cohere": Architecture(
        "Cohere", "neighbouring dimensions; attention and MLP side by side; tied"
    ),
    "Hunyuan": Architecture("HunYuanDenseV1", "norms of Q and K after RoPE"),
    "nanochat": Architecture("NanoChat", "norms after RoPE, which turns the other way; tanh"),
}
"""By the name that a reader looks for."""


def listing() -> str:
    """Markdown for docs/models.md."""
    return "\n".join(f"- **{name}**: {found.special}" for name, found in ARCHITECTURES.items())
