"""A tiny random Llama that reads and writes bytes, and its artifacts, really exported."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from edgeinfinite.cli import main
from edgeinfinite.runtime_py.session import Session
from edgeinfinite.runtime_py.tokenizer import load_tokenizer

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ["<|im_start|>", "<|im_end|>"]
GEOMETRY = ["--segment-length", "32", "--sink-length", "4", "--window-length", "8"]


def _checkpoint(folder: Path) -> Path:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {word: i for i, word in enumerate([*SPECIAL, *alphabet])}
    raw = Tokenizer(models.BPE(words, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token=SPECIAL[0],
        eos_token=SPECIAL[1],
        chat_template=TEMPLATE,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.fixture(scope="session")
def artifact(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("artifact") / "tiny"
    assert main(["export", "--model", str(checkpoint), "--output", str(folder), *GEOMETRY]) == 0
    return folder


@pytest.fixture(scope="session")
def base_artifact(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a model without a chat template."""
    folder = tmp_path_factory.mktemp("base")
    shutil.copytree(checkpoint, folder / "checkpoint")
    (folder / "checkpoint" / "chat_template.jinja").unlink()
    output = folder / "artifact"
    command = ["export", "--model", str(folder / "checkpoint"), "--output", str(output)]
    assert main([*command, *GEOMETRY]) == 0
    return output


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Starts the program in a process of its own, with pipes."""

    def started(*arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "edgeinfinite.cli", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # `communicate` would lose what a buffer holds
        )

    return started


@pytest.fixture
def greedy_answer() -> Callable[[Session, list[int], Path, int], str]:
    """The greedy answer to `tokens`, at most `count` long, written as plainly as it can be."""

    def answered(session: Session, tokens: list[int], artifact: Path, count: int) -> str:
        tokenizer = load_tokenizer(artifact)
        answer: list[int] = []
        logits = session.append(tokens)
        while len(answer) < count and int(logits.argmax()) not in tokenizer.stop_ids:
            answer.append(int(logits.argmax()))
            logits = session.append(answer[-1:])
        # Broken UTF-8 at the end of a random model's answer isn't shown.
        return tokenizer.decode(answer).rstrip("\ufffd")

    return answered
