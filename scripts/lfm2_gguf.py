"""Writes an LFM2 checkpoint's weights as a GGUF file, for llama.cpp beside an artifact of them.

    python scripts/lfm2_gguf.py FOLDER FILE.gguf --kind Q4_0 --embedding-kind Q8_0

Its tokens have no text: `bench` gives llama.cpp token ids. A file to chat with is llama.cpp's own
converter's to write.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from safetensors import safe_open
from transformers import AutoConfig, PretrainedConfig

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.gguf.architectures import ARCHITECTURES
from edgeinfinite.models.checkpoint.stored_loading import tensor_files

KINDS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")
_TABLE = "model.embed_tokens.weight"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="with config.json and safetensors")
    parser.add_argument("file", type=Path)
    parser.add_argument("--kind", choices=KINDS, default="Q4_0", help="of the matrices")
    parser.add_argument(
        "--embedding-kind", choices=KINDS, default="Q8_0", help="of the table, the LM head's too"
    )
    options = parser.parse_args()
    kinds = (GGMLQuantizationType[kind] for kind in (options.kind, options.embedding_kind))
    write(options.folder, options.file, *kinds)


def write(
    folder: Path, file: Path, kind: GGMLQuantizationType, embedding_kind: GGMLQuantizationType
) -> None:
    """Writes the file.

    Args:
        folder: of a checkpoint with tied embeddings.
        file: to write.
        kind: of the matrices; norms and convolutions are float32.
        embedding_kind: of the table of tokens, which is the LM head.

    Raises:
        EdgeInfiniteError: it isn't an LFM2, or holds a tensor that the format has no place for.
    """
    config = AutoConfig.from_pretrained(folder)
    if config.model_type != "lfm2":
        raise EdgeInfiniteError(f"{folder} is a {config.model_type}, not an lfm2")
    names = {parameter: tensor for tensor, parameter in _places(config)}
    writer, inner = GGUFWriter(file, "lfm2", use_temp_file=True), 0
    for name, tensor in _tensors(folder):
        if name not in names:
            raise EdgeInfiniteError(f"{folder} has the tensor {name}, which has no place")
        values = tensor.float().numpy()
        inner = len(values) if name.endswith("feed_forward.w1.weight") else inner
        chosen = embedding_kind if name == _TABLE else kind
        if values.ndim == 2 and chosen != GGMLQuantizationType.F32:
            writer.add_tensor(names[name], quantize(values, chosen), raw_dtype=chosen)
        else:
            writer.add_tensor(names[name], np.ascontiguousarray(values.squeeze()))
    _add_keys(writer, config, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _places(config: PretrainedConfig) -> Iterator[tuple[str, str]]:
    """Names in the file and in the checkpoint, without a suffix but `.weight`."""
    row = ARCHITECTURES["lfm2"]
    yield "token_embd.weight", _TABLE
    yield f"{row.last_norm[0]}.weight", f"{row.last_norm[1]}.weight"
    for index, kind in enumerate(config.layer_types):
        for tensor, module in (row.other_layer if kind == "conv" else row.layer).items():
            yield f"blk.{index}.{tensor}.weight", f"model.layers.{index}.{module}.weight"


def _tensors(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    where = tensor_files(str(folder), "main")
    for path in sorted(set(where.values())):
        with safe_open(path, "pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118  (not a dict)
                yield name, tensors.get_tensor(name)


def _add_keys(writer: GGUFWriter, config: PretrainedConfig, inner: int) -> None:
    heads = [config.num_key_value_heads * (kind != "conv") for kind in config.layer_types]
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_shortconv_l_cache(config.conv_L_cache)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    words = ["a", "b", "ab", *(f"<{index}>" for index in range(3, config.vocab_size))]
    writer.add_token_list(words)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)


if __name__ == "__main__":
    main()
