"""Tiny random models of every causal LM of transformers, made from its configuration's defaults.

Sizes are set by the names that configurations give them. Lists with an entry a layer keep one entry
of each kind. What a family needs beyond that stands in `EXCEPTIONS`.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from typing import Any

import torch
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.exportable import check_exportable
from edgeinfinite.models.checkpoint.text_part import text_configuration

VOCABULARY = 97
TYPES = tuple(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
_SIZES: dict[str, Any] = {
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), VOCABULARY),
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "embedding_size", "word_embed_proj_dim"), 32
    ),
    **dict.fromkeys(
        ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"), 2
    ),
    **dict.fromkeys(("num_decoder_layers", "encoder_layers", "num_encoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4),
    **dict.fromkeys(("decoder_attention_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("num_decoder_attention_heads", "num_encoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "kv_channels", "attention_head_size", "dim_head"), 8),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"), 8),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "o_lora_rank"), 16),
    **dict.fromkeys(("index_head_dim",), 16),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "decoder_ffn_dim", "encoder_ffn_dim"), 48),
    **dict.fromkeys(("ffn_hidden_size", "dim_ff", "dff", "n_inner", "intermediate_size_mlp"), 48),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 16),
    **dict.fromkeys(("shared_experts_intermediate_size", "expert_ffn_hidden_size"), 16),
    **dict.fromkeys(("moe_shared_expert_intermediate_size", "dense_intermediate_size"), 16),
    **dict.fromkeys(("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "num_experts_per_token", "moe_k"), 2),
    **dict.fromkeys(("n_group", "topk_group", "num_expert_group"), 1),
    **dict.fromkeys(("first_k_dense_replace", "num_dense_layers"), 1),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"), 256),
    **dict.fromkeys(("sliding_window", "sliding_window_size", "window_size", "local_attention"), 7),
    **dict.fromkeys(("attention_window_size", "attention_chunk_size"), 16),
    **dict.fromkeys(("hidden_size_per_layer_input", "laurel_rank", "rotary_dim"), 8),
    **dict.fromkeys(("mamba_n_heads", "mamba_num_heads", "n_mamba_heads"), 8),
    **dict.fromkeys(("mamba_d_head", "mamba_head_dim"), 8),
    **dict.fromkeys(("mamba_d_state", "state_size", "ssm_state_size", "mamba_chunk_size"), 16),
    **dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads", "linear_num_heads"), 2),
    **dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim", "linear_head_dim"), 8),
    "num_kv_shared_layers": 0,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_ALWAYS = {"head_dim", "num_key_value_heads", "num_kv_heads", "kv_channels", "attention_head_dim"}
"""Sizes that are set even where the configuration leaves them to others."""

_ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
_INDEXED = {
    "indexer_n_heads": 2,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 8,
    "indexer_budget": 16,
    "indexer_compress_ratio": 4,
    "ngram_vocab_size_base": 64,
    "ple_embed_dim": 32,
}
_BESIDE = ["linear_attention", "full_attention"]
_SHARING = {
    "num_hidden_layers": 5,
    "layer_types": ["sliding_attention", *["sliding_attention", "full_attention"] * 2],
    "num_kv_shared_layers": 2,
}
"""The last two layers read what the second and the third have cached."""

_GEMMA_3N = _SHARING | {
    "intermediate_size": [48] * 5,
    "activation_sparsity_pattern": [0.95, 0.0, 0.5, 0.0, 0.0],
}
_GEMMA_4 = _SHARING | {
    "global_head_dim": 16,
    "num_global_key_value_heads": 1,
    "attention_k_eq_v": True,
    "use_double_wide_mlp": True,
}
_HYBRIDS = ["linear_attention", "hybrid", "linear_attention", "hybrid"]
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1]},
    "blt": {"encoder_hash_byte_group_vocab": 64},
    "blt.encoder_config": {"hidden_size_global": 32},
    "blt.decoder_config": {"hidden_size_global": 32},
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": _ROPE, "sliding_attention": _ROPE}
    },
    "dbrx.attn_config": {"rope_theta": 10_000.0, "kv_n_heads": 2},
    "dots1": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "dots3_note": {"num_key_value_heads": 4},
    "dots3_note.vision_config": {"adapter_in_dim": 32, "adapter_out_dim": 32},
    "dots3_note.audio_config": {"adapter_input_size": 32, "adapter_out_dim": 32},
    "dots3_note.text_config": {"num_key_value_heads": 4, "head_dim": 16, "per_layer_config": {}},
    "dots3_note_text": {"num_key_value_heads": 4, "head_dim": 16, "per_layer_config": {}},
    "falcon_h1": {"mamba_d_ssm": 64},
    **dict.fromkeys(("gemma3n.text_config", "gemma3n_text"), _GEMMA_3N),
    **dict.fromkeys(("gemma4.text_config", "gemma4_text"), _GEMMA_4),
    **dict.fromkeys(("gemma4_unified.text_config", "gemma4_unified_text"), _GEMMA_4),
    "flint": {"mlp_only_layers": [0]},
    "gemma4_assistant.text_config": {
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "num_kv_shared_layers": 2,
    },
    "gemma4_unified_assistant.text_config": {"num_kv_shared_layers": 2},
    "granitemoehybrid": {
        "num_local_experts": 0,
        **dict.fromkeys(("layer_types", "layers_block_type"), _BESIDE),
    },
    "lfm2": {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "mamba2": {"num_heads": 8},
    "qwen4_exp.text_config": _INDEXED,
    "qwen4_exp_text": _INDEXED,
    "reformer": {"is_decoder": True, "axial_pos_embds_dim": [16, 16]},
    "roc_bert": {"pronunciation_vocab_size": 97, "shape_vocab_size": 97},
    "zamba": {"num_hidden_layers": 4, "layers_block_type": _HYBRIDS, "layer_types": _HYBRIDS},
    "zaya": {"num_experts_per_tok": 1},
}
"""By type, or by type and part of the configuration."""


def tiny_config(kind: str) -> PreTrainedConfig:
    """The configuration of a model type, shrunk, with its parts."""
    made = CONFIG_MAPPING[kind]
    return made(**settings_of(kind, made))


def settings_of(kind: str, made: Any) -> dict[str, Any]:
    """What the constructor of a configuration, or of a part of one, gets."""
    special = EXCEPTIONS.get(kind, {})
    parts = {}
    for name, part in made.sub_configs.items():
        if part is AutoConfig:
            spec = made.sub_configs_defaults[name]
            part = CONFIG_MAPPING[spec.model_type]
            parts[name] = {"model_type": spec.model_type}
        parts[name] = parts.get(name, {}) | settings_of(f"{kind}.{name}", part)
    defaults = made(**parts)
    known = defaults.to_dict()
    known |= {name: known[to] for name, to in defaults.attribute_map.items() if to in known}
    sizes = {
        name: size
        for name, size in _SIZES.items()
        if known.get(name) is not None or (name in known and name in _ALWAYS)
    }
    if "vocab_size" in known:
        sizes |= {n: _SIZES[n] for n in ("pad_token_id", "bos_token_id", "eos_token_id")}
    layers = getattr(defaults, "num_hidden_layers", None)
    by_layer = {
        name: value
        for name, value in known.items()
        if isinstance(value, list) and len(value) == layers and not name.startswith("_")
    }
    if by_layer and layers:
        chosen = _one_of_each(list(zip(*by_layer.values(), strict=True)))
        sizes |= {name: [value[i] for i in chosen] for name, value in by_layer.items()}
        sizes["num_hidden_layers"] = len(chosen)
    return sizes | parts | special


def _one_of_each(kinds: list[Any]) -> list[int]:
    """Indices of the first layer of each kind, and another."""
    first = {str(kind): index for index, kind in reversed(list(enumerate(kinds)))}
    chosen = sorted(first.values())
    return chosen if len(chosen) > 1 else [0, 1]


def has_windows(kind: str) -> bool:
    """Whether a text model has a sliding window that its defaults leave out."""
    defaults = tiny_config(kind)
    if defaults.sub_configs:
        return False
    on = getattr(defaults, "use_sliding_window", True)
    return hasattr(defaults, "sliding_window") and (not on or defaults.sliding_window is None)


_WINDOWS = {"sliding_window": 7, "use_sliding_window": True, "max_window_layers": 1}


def tiny_decoder(kind: str, *, windows: bool = False) -> PreTrainedModel:
    """A random model of a type of transformers' mapping.

    Args:
        kind: the type.
        windows: turn on what `has_windows` found.

    Raises:
        EdgeInfiniteError: the configuration alone says that it can't be loaded.
    """
    config = tiny_config(kind)
    config = text_configuration(config) or config
    if windows:
        made = type(config)
        config = made(**settings_of(kind, made) | {"layer_types": None} | _WINDOWS)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    size = sum(parameter.numel() for parameter in model.parameters())
    assert size < 8_000_000, f"{kind} isn't tiny: {size:,} parameters"
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.numel() > 1 and bool((parameter == parameter.flatten()[0]).all()):
            parameter += 0.3 * torch.randn_like(parameter)  # norms and biases that do something
    return model


REASONS = {
    "encoder-decoders": "encoder-decoder",
    "another model's caches": "KV caches of another model",
    "no rotary positions": "no rotary position embedding",
    "another layout of the decoder": "hold no `self_attn`|isn't one for all layers|interface",
    "layers that aren't attention": r"not attention|of type (hybrid|linear_attention)",
    "latent KV caches (MLA)": "latent one",
    "sparse attention": r"of type \w+|mask in a way of their own",
    "keys unlike values": "differ in heads",
    "two attentions a layer": "attends 2 times",
    "layers whose state can't be read again": "give --policy carry",
    "keys that can't be moved": "once tokens have left|use --policy reencode",
}
"""What a refusal says, by the name that it has in `table_of`; the first that is found counts."""


OUTCOMES = {
    "right": (
        "afmoe apertus arcee aria_text bamba beam bitnet cohere cohere2 cohere2_moe "
        "cohere_compass_text cwm dots1 emu3 ernie4_5 ernie4_5_moe exaone4 exaone_moe falcon_h1 "
        "flex_olmo flint fuyu gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text gemma4 "
        "gemma4_text gemma4_unified gemma4_unified_text glm glm4 glm4_moe got_ocr2 gpt_oss "
        "granite granite_swa granitemoe granitemoe_swa granitemoehybrid granitemoeshared helium "
        "hunyuan_v1_dense hunyuan_v1_moe hy_v3 hyperclovax internlm3 iquestcoder jais2 kolibri1 "
        "laguna lfm2 lfm2_moe lfm3 llama mellum mimo_v2_flash minimax_m2 minimax_m3_vl_text "
        "ministral ministral3 mistral mixtral moss_transcribe_diarize nanochat olmo olmo2 olmo3 "
        "olmoe persimmon phi phi3 phi4_multimodal phimoe qwen2 qwen2_moe qwen3 qwen3_5 "
        "qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next seed_oss smollm3 "
        "solar_open starcoder2 vaultgemma"
    ),
    "encoder-decoders": (
        "bart bigbird_pegasus blenderbot blenderbot-small marian mbart musicgen musicgen_melody "
        "mvp pegasus plbart prophetnet whisper"
    ),
    "another model's caches": "gemma4_assistant gemma4_unified_assistant",
    "no rotary positions": (
        "bert bert-generation big_bird biogpt bloom camembert cpmant ctrl data2vec-text electra "
        "ernie git gpt-sw3 gpt2 gpt_bigcode gpt_neo inkling2_text inkling_text megatron-bert mpt "
        "openai-gpt opt reformer rembert roberta roberta-prelayernorm roc_bert rwkv trocr xglm "
        "xlm xlm-roberta xlm-roberta-xl xlnet xlstm xmod"
    ),
    "another layout of the decoder": (
        "blt codegen dbrx falcon gpt_neox gpt_neox_japanese gptj hrm_text jetmoe kimi_linear "
        "llama4 llama4_text mllama modernbert-decoder moshi nemotron roformer stablelm"
    ),
    "layers that aren't attention": (
        "bailing_hybrid falcon_mamba jamba mamba mamba2 "
        "minimax nemotron_h olmo_hybrid qwen4_exp qwen4_exp_text recurrent_gemma zamba zamba2 zaya"
    ),
    "latent KV caches (MLA)": (
        "axk1 deepseek_v2 deepseek_v3 glm4_moe_lite longcat_flash minicpm3 youtu"
    ),
    "sparse attention": (
        "axk2 deepseek_v32 deepseek_v4 doge dots3_note dots3_note_text glm_moe_dsa hy_v4"
    ),
    "two attentions a layer": "diffllama",
}
"""What an export does with each type; `python tests/every_decoder.py` prints it anew."""


def counts() -> str:
    """A sentence for docs/models.md."""
    right = len(OUTCOMES["right"].split())
    refused = sum(len(kinds.split()) for kinds in OUTCOMES.values()) - right
    return (
        f"Of the {len(TYPES)} causal LMs of transformers, tiny and random, {right} compute after "
        f"evictions what transformers computes from the kept tokens; {refused} are refused in one "
        f"line."
    )


def expected(kind: str) -> str:
    """The outcome that `OUTCOMES` has for a type."""
    return next(name for name, kinds in OUTCOMES.items() if kind in kinds.split())


def outcome(kind: str, policy: str) -> str:
    """`right`, or why an export refuses a tiny model of a type; anything else raises."""
    try:
        check_exportable(tiny_decoder(kind), policy)
    except EdgeInfiniteError as error:
        said = str(error)
        assert "\n" not in said, f"{kind} is refused in more than a line: {said}"
        return next(name for name, pattern in REASONS.items() if re.search(pattern, said))
    return "right"


if __name__ == "__main__":
    found = defaultdict(list)
    for kind in sys.argv[1:] or TYPES:
        found[outcome(kind, "carry")].append(kind)
    for name in ("right", *REASONS):
        print(f'    "{name}": "{" ".join(found[name])}",  # {len(found[name])}')
