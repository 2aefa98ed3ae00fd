"""Tiny random GGUF files of every architecture, the same for the same arguments.

Weights are drawn per tensor from its name, so a file with one more tensor has the others unchanged.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tiny_gguf_deltas as deltas
import tiny_gguf_experts as sparse
import tiny_gguf_gemmas as gemmas
import tiny_gguf_hybrids as hybrids
from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter
from gguf.quants import quantize
from tiny_gguf_deltas import DELTAS
from tiny_gguf_experts import SPARSE
from tiny_gguf_gemmas import GEMMAS
from tiny_gguf_hybrids import HYBRIDS
from transformers.convert_slow_tokenizer import bytes_to_unicode

WIDTH, INNER, LAYERS, VOCABULARY, CONTEXT = 64, 96, 2, 320, 8192
EXPERTS = 4
ROPE_FREQS = "rope_freqs.weight"

_HEADS = {  # heads, KV heads, dimensions of a head
    "qwen3": (2, 1, 64),
    "qwen3moe": (2, 1, 64),
    "gemma": (2, 1, 64),
    "gemma2": (2, 1, 64),
    "gemma3": (2, 1, 64),
    "mixtral": (4, 2, 16),
}
_LAYER_NORM = ("starcoder2", "nemotron")
_GEMMAS = ("gemma", "gemma2", "gemma3", *GEMMAS)
_MOE = ("mixtral", "qwen2moe", "qwen3moe")
LATER = (*HYBRIDS, *GEMMAS, *SPARSE, *DELTAS)
ARCHITECTURES = (
    "llama", "mixtral", "mistral3", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "gemma", "gemma2",
    "gemma3", "phi3", "granite", "smollm3", "olmo2", "starcoder2", "nemotron",
    "lfm2", *LATER,
)  # fmt: skip


def layers_of(name: str) -> int:
    """How many layers a tiny file of this architecture has."""
    known = {"gemma3": 6, "smollm3": 4, "lfm2": 4} | hybrids.LAYERS | gemmas.LAYERS
    return (known | sparse.LAYERS | deltas.LAYERS).get(name, LAYERS)


def architecture_of(name: str) -> str:
    """As the file calls it."""
    names = {"mixtral": "llama", "granitehybrid-experts": "granitehybrid"}
    return names.get(name, re.sub("-(norm|shared|plain|predicting)$", "", name))


def keys_of(name: str) -> dict[str, Any]:
    """The header of an architecture's file, without the architecture's name."""
    heads, kv_heads, head = _HEADS.get(name, (4, 2, 16))
    keys: dict[str, Any] = {
        "context_length": CONTEXT,
        "embedding_length": WIDTH,
        "block_count": layers_of(name),
        "feed_forward_length": INNER,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "rope.freq_base": 10000.0,
    }
    if head * heads != WIDTH:
        keys |= {"attention.key_length": head, "attention.value_length": head}
    epsilon = "layer_norm_epsilon" if name in _LAYER_NORM else "layer_norm_rms_epsilon"
    keys[f"attention.{epsilon}"] = 1e-5
    if name in _MOE:
        keys |= {"expert_count": EXPERTS, "expert_used_count": 2}
    if name in ("qwen2moe", "qwen3moe"):
        keys["expert_feed_forward_length"] = INNER // 2
    if name == "qwen2moe":
        keys["expert_shared_feed_forward_length"] = INNER
    if name in ("gemma2", "gemma3"):
        keys["attention.sliding_window"] = 100
    if name == "gemma3":
        keys["rope.freq_base"] = 1e6
    if name == "granite":
        keys |= {"logit_scale": 3.0, "residual_scale": 0.4, "embedding_scale": 2.0}
        keys["attention.scale"] = 0.2
    if name == "lfm2":
        keys |= {"attention.head_count_kv": [0, kv_heads, 0, kv_heads], "shortconv.l_cache": 3}
    if name in HYBRIDS:
        keys |= hybrids.keys_of(name)
    if name in GEMMAS:
        keys |= gemmas.keys_of(name)
    if name in SPARSE:
        keys |= sparse.keys_of(name)
    if name in DELTAS:
        keys |= deltas.keys_of(name)
    return keys


def shapes_of(name: str) -> dict[str, tuple[int, ...]]:
    """The tensors of an architecture's file and their shapes, rows first."""
    heads, kv_heads, head = _HEADS.get(name, (4, 2, 16))
    q, kv = heads * head, kv_heads * head
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (WIDTH,),
        "attn_q.weight": (q, WIDTH),
        "attn_k.weight": (kv, WIDTH),
        "attn_v.weight": (kv, WIDTH),
        "attn_output.weight": (WIDTH, q),
        "ffn_norm.weight": (WIDTH,),
        "ffn_gate.weight": (INNER, WIDTH),
        "ffn_up.weight": (INNER, WIDTH),
        "ffn_down.weight": (WIDTH, INNER),
    }
    if name in ("qwen2", "qwen2moe", *_LAYER_NORM):
        layer |= {"attn_q.bias": (q,), "attn_k.bias": (kv,), "attn_v.bias": (kv,)}
    if name in _LAYER_NORM:
        del layer["ffn_gate.weight"]
        layer |= {f"{norm}.bias": (WIDTH,) for norm in ("attn_norm", "ffn_norm", "attn_output")}
        layer |= {"ffn_up.bias": (INNER,), "ffn_down.bias": (WIDTH,)}
    if name in ("qwen3", "qwen3moe", "gemma3"):
        layer |= {"attn_q_norm.weight": (head,), "attn_k_norm.weight": (head,)}
    if name in ("gemma2", "gemma3", "olmo2"):
        layer |= {"post_attention_norm.weight": (WIDTH,), "post_ffw_norm.weight": (WIDTH,)}
    if name == "olmo2":
        del layer["attn_norm.weight"], layer["ffn_norm.weight"]
        layer |= {"attn_q_norm.weight": (q,), "attn_k_norm.weight": (kv,)}
    if name == "phi3":
        for part in ("attn_q", "attn_k", "attn_v", "ffn_gate"):
            del layer[f"{part}.weight"]
        layer |= {"attn_qkv.weight": (q + 2 * kv, WIDTH), "ffn_up.weight": (2 * INNER, WIDTH)}
    if name in _MOE:
        for part in ("ffn_gate", "ffn_up", "ffn_down"):
            del layer[f"{part}.weight"]
        inner = INNER if name == "mixtral" else INNER // 2
        layer |= {
            "ffn_gate_inp.weight": (EXPERTS, WIDTH),
            "ffn_gate_exps.weight": (EXPERTS, inner, WIDTH),
            "ffn_up_exps.weight": (EXPERTS, inner, WIDTH),
            "ffn_down_exps.weight": (EXPERTS, WIDTH, inner),
        }
    if name == "qwen2moe":
        layer |= {
            "ffn_gate_inp_shexp.weight": (WIDTH,),
            "ffn_gate_shexp.weight": (INNER, WIDTH),
            "ffn_up_shexp.weight": (INNER, WIDTH),
            "ffn_down_shexp.weight": (WIDTH, INNER),
        }
    if name == "lfm2":
        layer |= {"attn_q_norm.weight": (head,), "attn_k_norm.weight": (head,)}
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (VOCABULARY, WIDTH)}
    for index in range(layers_of(name)):
        parts = _convolution(layer) if name == "lfm2" and index % 2 == 0 else layer
        if name in HYBRIDS:
            parts = hybrids.layer_of(name, index, layer)
        if name in GEMMAS:
            parts = gemmas.layer_of(name, index, layer)
        if name in SPARSE:
            parts = sparse.layer_of(name, index, layer)
        if name in DELTAS:
            parts = deltas.layer_of(index, layer)
        found |= {f"blk.{index}.{part}": shape for part, shape in parts.items()}
    found["token_embd_norm.weight" if name.startswith("lfm2") else "output_norm.weight"] = (WIDTH,)
    if name in GEMMAS:
        found |= gemmas.others_of(name)
    if name in _LAYER_NORM:
        found["output_norm.bias"] = (WIDTH,)
    if name in ("olmo2", "nemotron", "qwen2moe", "mistral3", "olmoe", "gpt-oss"):
        found["output.weight"] = (VOCABULARY, WIDTH)
    return found


def _convolution(layer: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The tensors of a layer with a convolution in the place of attention."""
    kept = {name: shape for name, shape in layer.items() if not name.startswith("attn_")}
    return kept | {
        "attn_norm.weight": (WIDTH,),
        "shortconv.conv.weight": (WIDTH, 3),
        "shortconv.in_proj.weight": (3 * WIDTH, WIDTH),
        "shortconv.out_proj.weight": (WIDTH, WIDTH),
    }


def drawn(tensor: str, shape: tuple[int, ...], name: str = "") -> np.ndarray:
    """A tensor's values: matrices keep the size of what they multiply, norms are near 1."""
    random = np.random.default_rng(zlib.crc32(tensor.encode()))
    values = random.standard_normal(shape)
    if name.startswith("gemma3n") and "post_ffw_norm" in tensor:
        return np.float32(values / 20)
    if "norm.weight" in tensor or tensor.endswith("ffn_norm"):
        return np.float32(1 + values / 4)
    if tensor == ROPE_FREQS:
        return gemmas.divisors()
    if tensor.endswith(("layer_output_scale.weight", "altup_correct_scale.weight")):
        return np.float32(1 + values / 4)
    if tensor.endswith("ssm_a"):  # decays from fast to so slow that a text's begin still counts
        return np.float32(-np.exp(np.linspace(-6, 1, shape[0]))).reshape(shape)
    if tensor.endswith(".bias"):
        return np.float32(values / 2)
    if tensor == "token_embd.weight":
        return np.float32(values / (8 if name in _GEMMAS else 1))
    return np.float32(values * 1.4 / np.sqrt(shape[-1]))


def write(
    path: Path,
    name: str = "llama",
    *,
    keys: Mapping[str, Any] | None = None,
    more: Mapping[str, np.ndarray] | None = None,
    without: str = "",
    split: int = 0,
    kind: str = "F32",
) -> Path:
    """A file.

    Args:
        path: to write.
        name: of `ARCHITECTURES`, see `architecture_of`.
        keys: further or other values; None takes a key out. Names with no architecture's name
            before them, but `general.*` and the like.
        more: further or other tensors.
        without: a tensor to leave out.
        split: at most so many tensors a part.
        kind: of the matrices, `Q8_0` and the like; norms, biases and convolutions are float32.
    """
    architecture = architecture_of(name)
    writer = GGUFWriter(path, architecture, split_max_tensors=split)
    written = keys_of(name) | dict(keys or {})
    for key, value in written.items():
        if value is not None:
            whole = key.startswith(("general.", "tokenizer.", "odd.", "mradermacher."))
            _add(writer, key if whole else f"{architecture}.{key}", value)
    _add_tokens(writer, pre="gpt-2" if "tokenizer.ggml.pre" not in written else None)
    tensors = {part: drawn(part, shape, name) for part, shape in shapes_of(name).items()}
    for part, values in (tensors | dict(more or {})).items():
        if part == without:
            continue
        if (
            kind != "F32"
            and values.ndim > 1
            and not part.endswith(("conv.weight", "conv1d.weight", ".bias"))
        ):
            form = GGMLQuantizationType[kind]
            writer.add_tensor(part, quantize(values, form), raw_dtype=form)
        else:
            writer.add_tensor(part, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: GGUFWriter, key: str, value: Any) -> None:
    kinds = {bool: "BOOL", int: "UINT32", float: "FLOAT32", str: "STRING", list: "ARRAY"}
    writer.add_key_value(key, value, GGUFValueType[kinds[type(value)]])


def _add_tokens(writer: GGUFWriter, pre: str | None) -> None:
    writer.add_tokenizer_model("gpt2")
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    words = [*bytes_to_unicode().values(), "ab", "<bos>", "<eos>"]
    words += [f"<{index}>" for index in range(len(words), VOCABULARY)]
    normal, control = 1, 3
    writer.add_token_list(words)
    writer.add_token_types([control if len(word) > 2 else normal for word in words])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(words.index("<bos>"))
    writer.add_eos_token_id(words.index("<eos>"))
