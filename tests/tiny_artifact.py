"""A tiny random Llama that reads and writes bytes: a checkpoint and a really exported artifact."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import torch
from byte_tokenizer import byte_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from edgeinfinite.cli import main

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
VOCABULARY = 258
"""All bytes, and `SPECIAL`."""

SPECIAL = ["<|im_start|>", "<|im_end|>"]
GEOMETRY = ["--segment-length", "32", "--sink-length", "4", "--window-length", "8"]


def tiny_checkpoint(folder: Path, layers: int = 2, model: PreTrainedModel | None = None) -> Path:
    """A folder as `save_pretrained` writes it; `model` in place of a Llama, with a vocabulary of
    `VOCABULARY` or more.
    """
    begin, end = SPECIAL
    byte_tokenizer(SPECIAL, begin=begin, end=end, template=TEMPLATE).save_pretrained(folder)
    if model is not None:
        model.save_pretrained(folder)
        return folder
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def tiny_artifact(
    folder: Path,
    *options: str,
    layers: int = 2,
    model: PreTrainedModel | None = None,
    anew: bool = False,
) -> Path:
    """The artifact of the tiny checkpoint; the paper's policy with the geometry above, unless
    options say otherwise.

    What this or another test process has exported before is copied, unless `anew` says that
    something else has changed, or an option names a file.
    """
    if model is None and not anew and not any(option.startswith("/") for option in options):
        exported = _exported(options, layers)
        shutil.copytree(exported, folder)
        shutil.copytree(_checkpoint_of(exported), _checkpoint_of(folder))
        return folder
    return _export(folder, options, layers, model)


_OWN = tempfile.TemporaryDirectory(prefix="edgeinfinite-tests-")
"""Where there is no folder that test processes share (`conftest.SHARED`)."""


@functools.cache
def _exported(options: tuple[str, ...], layers: int) -> Path:
    """Written under a name of its own and renamed: two processes may export it at the same time."""
    kept = Path(os.environ.get("EDGEINFINITE_TESTS_SHARED", _OWN.name))
    found = kept / hashlib.sha256(repr((options, layers)).encode()).hexdigest()[:20]
    if not found.exists():
        unfinished = Path(tempfile.mkdtemp(dir=kept, prefix="unfinished-"))
        _export(unfinished / "artifact", options, layers, None)
        try:
            unfinished.rename(found)
        except OSError:  # the other process was faster
            shutil.rmtree(unfinished)
    return found / "artifact"


def _export(
    folder: Path, options: tuple[str, ...], layers: int, model: PreTrainedModel | None
) -> Path:
    checkpoint = tiny_checkpoint(_checkpoint_of(folder), layers, model)
    command = ["export", "--model", str(checkpoint), "--output", str(folder)]
    command += ["--policy", "reencode", *GEOMETRY, *options]
    assert main(command) == 0
    return folder


def _checkpoint_of(folder: Path) -> Path:
    return folder.with_name(folder.name + "-checkpoint")
