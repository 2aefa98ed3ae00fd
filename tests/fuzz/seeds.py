"""Whole small files of every kind, for the corpus: what `make_corpus.py` starts with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import torch
from fuzz.changes import ASKED
from fuzz.readers import HEAD_DIM, HEADS, KV_HEADS, LAYERS, TOKENIZER_FILES, VOCABULARY
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from runtime_py.text.test_template_limits import ENDLESS
from tiny_artifact import tiny_artifact
from tiny_documents import archive, epub, page_of, pdf
from transformers import LlamaConfig, LlamaForCausalLM

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.models.memory.feature_map import FeatureMap
from edgeinfinite.models.memory.gate import MemoryGate
from edgeinfinite.models.recall.scorer_file import save_scorers, untrained_scorers
from edgeinfinite.models.trained_file import save_layers
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.notes import ReadDocument, SessionNotes
from edgeinfinite.runtime_py.session.saved_session import save_session
from edgeinfinite.runtime_py.session.session import Session

Files = dict[str, bytes]
"""By name."""

GEOMETRY = ["--segment-length", "8", "--sink-length", "2", "--window-length", "4"]
ARTIFACTS = {
    "artifact-reencode": [*GEOMETRY, "--gate", "untrained"],
    "artifact-carry": [*GEOMETRY, "--policy", "carry", "--recall-slots", "8", "--scorer"],
}
TEMPLATES = {
    "system-first": (
        "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{{ messages[0]"
        "['content']|trim + '\n' }}{% else %}{% set rest = messages %}{% endif %}{% for m in rest "
        "%}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles') }}"
        "{% endif %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"
    ),
    "macros": (
        "{%- macro say(m) -%}[{{ m.role|upper }}] {{ m.content }}{{ '\n' }}{%- endmacro -%}"
        "{% set ns = namespace(last='') %}{% for m in messages %}{{ say(m) }}{% set ns.last = "
        "m.role %}{% endfor %}{% if add_generation_prompt and ns.last != 'x' %}[A] {% endif %}"
    ),
}
CONFIGS = {
    "list": {"eos_token_id": [1, 0], "bos_token_id": 0, "do_sample": True, "temperature": 0.6},
    "greedy": {"eos_token_id": 1, "do_sample": False, "top_p": 0.5, "top_k": 3},
    "empty": {},
    "none": {"eos_token_id": None, "pad_token_id": -1, "repetition_penalty": 1.1},
}
HI = {"role": "user", "content": "Hi"}
PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", None]}},
    "required": ["a"],
}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
REQUESTS: dict[str, object] = {
    "chat": {"model": "tiny", "messages": [HI], "stream": True, "max_tokens": 9},
    "parts": {
        "messages": [{"role": "developer", "content": [{"type": "text", "text": "a"}]}, HI],
        "stop": ["\n", "x"],
        "seed": -1,
        "logprobs": True,
        "top_logprobs": 2,
        "logit_bias": {"3": -100},
    },
    "schema": {
        "messages": [HI],
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "n",
                "schema": PARAMETERS,
            },
        },
    },
    "completion": {"prompt": ["Once"], "temperature": 0.5, "top_p": 0.9, "n": 1, "stream": False},
    "tools": {
        "messages": [
            HI,
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "1", "content": "42"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}],
        "tool_choice": "required",
    },
}
RESPONSES: dict[str, object] = {
    "text": {"input": "Hi", "instructions": "Be brief.", "max_output_tokens": 9, "stream": True},
    "items": {
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "1", "output": "42"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": PARAMETERS, "strict": True}],
        "tool_choice": {"type": "function", "name": "f"},
        "store": False,
    },
    "schema": {
        "input": "A pet?",
        "text": {"format": {"type": "json_schema", "name": "n", "schema": PARAMETERS}},
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
    },
}
MESSAGES: dict[str, object] = {
    "text": {"system": "Be brief.", "messages": [HI], "max_tokens": 9, "stop_sequences": ["x"]},
    "blocks": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "1", "content": "42"}],
            },
        ],
        "tools": [{"name": "f", "description": "d", "input_schema": PARAMETERS}],
        "tool_choice": {"type": "any"},
        "max_tokens": 9,
    },
}


def files(folder: Path) -> dict[str, Files]:
    """All of them, by reader; what they are made of is left in a folder."""
    made = _artifacts(folder)
    made["tokenizer"]["sentencepiece.json"] = _sentencepiece()
    made["chat_template"] |= {f"{n}.jinja": text.encode() for n, text in TEMPLATES.items()}
    made["generation_config"] |= {f"{n}.json": _json(value) for n, value in CONFIGS.items()}
    return made | {
        "gate": _gates(folder),
        "scorer": _scorers(folder),
        "weights": _weights(folder),
        "gguf": _ggufs(folder),
        "document": _documents(),
        **{
            reader: {f"{name}.json": _json(value) for name, value in asked.items()}
            for reader, asked in zip(ASKED, (REQUESTS, RESPONSES, MESSAGES), strict=True)
        },
    }


def hostile() -> dict[str, Files]:
    """Files that are refused, beside those that `make_corpus.py` finds by changing whole ones."""
    deep = b"[" * 3000 + b"]" * 3000
    templates = {f"endless-{i:02}.jinja": t.encode() for i, t in enumerate(ENDLESS)}
    return {
        "chat_template": {n: data for n, data in templates.items() if len(data) < 4000},
        **{kind: {"deep.json": deep} for kind in ("manifest", "tokenizer", *ASKED)},
        "tokenizer_config": {"deep.json": deep, "latin.json": b'{"eos_token": "\xe9"}'},
        "generation_config": {"deep.json": deep, "twice.json": b'{"eos_token_id": 1e400}'},
        "session": {"empty.session": b"", "long.session": b"\xff" * 8 + b"{}"},
        "gguf": {"magic.gguf": b"GGUF", "empty.gguf": b""},
        "document": {
            "nul.txt": b"a\x00b",
            "utf16.txt": b"\xff\xfe\x00\xd8",
            "rtf.txt": b"{\\rtf1 x}",
        },
    }


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _artifacts(folder: Path) -> dict[str, Files]:
    """Manifests, sessions and the tokenizer's files of really exported artifacts."""
    made: dict[str, Files] = {"manifest": {}, "session": {}}
    (scorer,) = _scorers(folder)
    for name, options in ARTIFACTS.items():
        torch.manual_seed(0)
        model = LlamaForCausalLM(_config(VOCABULARY, 16, HEADS, KV_HEADS))
        more = [str(folder / scorer)] if options[-1] == "--scorer" else []
        artifact = tiny_artifact(folder / name, *options, *more, model=model)
        manifest = json.loads((artifact / "manifest.json").read_bytes())
        manifest |= {"details": {}, "tools": {}}  # for people
        del manifest["own_sha256"]  # or every change would be found at once
        manifest["quantization"]["unquantized"] = []
        made["manifest"][f"{name}.json"] = _json(manifest)
        for tokens in (0, 5, 60):
            made["session"][f"{name}-{tokens}.session"] = _session(artifact, tokens)
        for kind, file in TOKENIZER_FILES.items():
            suffix = Path(file).suffix
            made.setdefault(kind, {})["artifact" + suffix] = (artifact / file).read_bytes()
    made["tokenizer"]["artifact.json"] = _json(json.loads(made["tokenizer"]["artifact.json"]))
    return {
        kind: {name.replace("artifact.", "artifact-tiny."): data for name, data in found.items()}
        for kind, found in made.items()
    }


def _config(vocabulary: int, width: int, heads: int, kv_heads: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=width,
        num_hidden_layers=LAYERS,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=width // heads,
        max_position_embeddings=128,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=True,
    )


def _session(artifact: Path, tokens: int) -> bytes:
    session = Session(load_engine(artifact))
    if tokens:
        session.append([3 + index % 200 for index in range(tokens)])
    document = ReadDocument("a.txt", "A title", "0" * 64, tokens, raw=False) if tokens > 9 else None
    path = artifact.parent / "a.session"
    save_session(session, path, extra=SessionNotes("tiny", False, document).to_metadata())
    return path.read_bytes()


def _sentencepiece() -> bytes:
    """As Llama 2's: spaces as U+2581, merges, and bytes for what isn't in the vocabulary."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words += ["\u2581", "a", "b", "\u2581a", "ab", "\u2581ab"]
    special = [
        {"id": index, "content": words[index], "special": True, "single_word": False,
         "lstrip": False, "rstrip": False, "normalized": False}
        for index in range(3)
    ]  # fmt: skip
    return _json({
        "version": "1.0",
        "added_tokens": special,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        ]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
        "model": {
            "type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
            "vocab": {word: index for index, word in enumerate(words)},
            "merges": [["\u2581", "a"], ["a", "b"], ["\u2581a", "b"]],
        },
    })  # fmt: skip


def _gates(folder: Path) -> Files:
    torch.manual_seed(0)
    form = FeatureMap("elu", KV_HEADS, HEAD_DIM)
    layers = [MemoryGate(HEADS, HEAD_DIM, 4, form, "constant") for _ in range(LAYERS)]
    path = folder / "gate.safetensors"
    save_layers(path, layers, {"feature_map": "elu", "opening": "constant"})
    return {path.name: path.read_bytes()}


def _scorers(folder: Path) -> Files:
    path = folder / "scorer.safetensors"
    save_scorers(path, untrained_scorers(LAYERS, KV_HEADS, HEAD_DIM, 0), RankRule(), {})
    return {path.name: path.read_bytes()}


def _weights(folder: Path) -> Files:
    torch.manual_seed(0)
    own = folder / "weights"
    LlamaForCausalLM(_config(16, 8, 1, 1)).save_pretrained(own)
    data = (own / "model.safetensors").read_bytes()
    shutil.rmtree(own)
    return {"model.safetensors": data}


def _ggufs(folder: Path) -> Files:
    made = {}
    for name, width, quantized in (("floats", 8, False), ("q8_0", 32, True)):
        path = folder / f"{name}.gguf"
        writer = GGUFWriter(path, "llama")
        writer.add_context_length(64)
        writer.add_embedding_length(width)
        writer.add_block_count(1)
        writer.add_feed_forward_length(width)
        writer.add_head_count(1)
        writer.add_head_count_kv(1)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_freq_base(10000.0)
        writer.add_vocab_size(16)
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(["a", "b", "ab", *(f"<{index}>" for index in range(3, 16))])
        writer.add_token_merges(["a b"])
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(1)
        _add_tensors(writer, width, quantized=quantized)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        made[path.name] = path.read_bytes()
    return made


def _add_tensors(writer: GGUFWriter, width: int, *, quantized: bool) -> None:
    dice = np.random.default_rng(0)
    matrices = [f"attn_{part}" for part in ("q", "k", "v", "output")]
    matrices += [f"ffn_{part}" for part in ("gate", "up", "down")]
    shapes = {"token_embd": (16, width), "output_norm": (width,)}
    shapes |= {f"blk.0.{name}": (width, width) for name in matrices}
    shapes |= {f"blk.0.{name}": (width,) for name in ("attn_norm", "ffn_norm")}
    for name, shape in shapes.items():
        values = dice.standard_normal(shape).astype(np.float32)
        if quantized and len(shape) == 2:
            kind = GGMLQuantizationType.Q8_0
            writer.add_tensor(f"{name}.weight", quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(f"{name}.weight", values)


def _documents() -> Files:
    word = {
        "word/document.xml": '<w:document xmlns:w="http://schemas.openxmlformats.org/'
        'wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>Text</w:t></w:r></w:p></w:body>'
        "</w:document>",
        "docProps/core.xml": '<p xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T'
        "</dc:title></p>",
    }
    return {
        "a.txt": "Plain text, d\u00e9j\u00e0 vu.\r\n\tTwo lines.\n".encode(),
        "utf16.txt": "D\u00e9j\u00e0 vu".encode("utf-16"),
        "latin.txt": "Der K\u00e4se ist s\u00fc\u00df.".encode("cp1252"),
        "a.html": page_of(
            "<h1>T</h1><ul><li>a</li></ul><table><tr><td>1</td></tr></table>"
        ).encode(),
        "a.pdf": pdf("Text.", title="T"),
        "a.epub": epub("<p>one</p>", "<h2>two</h2>"),
        "a.docx": archive(dict(word)),
    }
