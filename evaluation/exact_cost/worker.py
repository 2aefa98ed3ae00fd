"""Measures one case in a fresh process: a `MemoryCase` on stdin, a `MemoryRow` on stdout's last
line, as JSON.
"""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from edgeinfinite.evaluation.exact_cost.case import MemoryCase, MemoryRow
from edgeinfinite.evaluation.exact_cost.methods import method_of
from edgeinfinite.runtime_py.answer.answer_figures import step_figures

_WARM_UP_TOKENS = 8
_SPARED = 0.1
"""Share of the machine's available memory that a method may not take."""

_RESET_PEAK = "5"
"""Written to /proc/self/clear_refs: VmHWM becomes what is resident now."""


def measure(case: MemoryCase) -> MemoryRow:
    """Loads the checkpoint, reads the prompt, decodes; raises whatever the method raises."""
    _limit_memory()
    torch.set_num_threads(case.threads)
    dtype = getattr(torch, case.dtype)
    model = AutoModelForCausalLM.from_pretrained(case.model, dtype=dtype).eval()
    model.requires_grad_(False)
    tokens = torch.from_numpy(_tokens(case, model.config.get_text_config().vocab_size))
    _touch(model)
    weights = _settled_bytes()
    method = method_of(case, model)
    started, worked = time.perf_counter(), time.process_time()
    logits = method.read(tokens[:, : case.prompt_tokens])
    ttft, cpu = time.perf_counter() - started, time.process_time() - worked
    prefill = _status("VmHWM")
    if case.logits:
        np.save(case.logits, logits.float().numpy())
    steps, losses = [], []
    for at in range(case.prompt_tokens, case.prompt_tokens + case.new_tokens):
        token = int(tokens[0, at])
        losses.append(_loss(logits, token))
        before = time.perf_counter()
        logits = method.read(tokens[:, at : at + 1])
        steps.append(time.perf_counter() - before)
    peak = _status("VmHWM")
    return MemoryRow(
        method=case.method,
        prompt_tokens=case.prompt_tokens,
        new_tokens=case.new_tokens,
        threads=case.threads,
        chunk=case.chunk,
        dtype=case.dtype,
        weights_bytes=weights,
        peak_bytes=peak,
        activation_bytes=peak - weights,
        prefill_bytes=prefill - weights,
        disk_bytes=method.disk_bytes,
        ttft_s=ttft,
        prefill_cpu_s=cpu,
        decode_tokens_per_s=step_figures(steps)[0],
        nats_per_token=float(np.mean(losses)) if case.tokens and losses else None,
    )


def _tokens(case: MemoryCase, vocabulary: int) -> np.ndarray:
    """`[1, prompt_tokens + new_tokens]` int64."""
    count = case.prompt_tokens + case.new_tokens
    if case.tokens:
        tokens: np.ndarray = np.load(case.tokens)[np.newaxis, :count]
        return tokens
    low = min(100, vocabulary // 2)  # special tokens are at the vocabulary's start
    return np.random.default_rng(0).integers(low, vocabulary, (1, count))


def _loss(logits: torch.Tensor, token: int) -> float:
    return -float(torch.log_softmax(logits.float(), -1)[token])


def _touch(model: PreTrainedModel) -> None:
    """Reads all weights, which may be mapped from their file, and runs a few tokens: libraries
    allocate buffers of their own on their first call.
    """
    for parameter in model.parameters():
        parameter.sum()
    with torch.inference_mode():
        model(torch.ones(1, _WARM_UP_TOKENS, dtype=torch.int64), logits_to_keep=1)


def _settled_bytes() -> int:
    """Resident memory without what loading left over; the peak is counted from here."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
    return _status("VmRSS")


def _limit_memory() -> None:
    """A method that needs more than the machine has fails here, and takes nobody else along."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    limit = _status("VmSize") + int(available * 1024 * (1 - _SPARED))
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _status(name: str) -> int:
    """Bytes of a field of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def main() -> None:
    """The process's entry point."""
    row = measure(MemoryCase(**json.load(sys.stdin)))
    print(json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    main()
