"""The paper's tables on a GPU: memory, first token and decode of each method, by length.

python experiments/exact_on_gpu.py meta-llama/Meta-Llama-3-8B-Instruct \
    --lengths 8192,16384,32768,65536,131072 --dtype bfloat16 --chunk 2048 --json rows.json

*Memory* is the peak of what PyTorch allocated, without the weights. A method that runs out of it
isn't measured at longer texts: its longest context is the length before. Prompts are random tokens;
beyond the positions that a checkpoint was trained on, memory and time are what they would be.
`offload` and `mom-paper` move keys and values to the host's memory with transformers' own cache.

It was never run on a GPU; its tests run on the CPU, where no memory is counted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from edgeinfinite.evaluation.exact_cost.case import METHODS, MemoryCase
from edgeinfinite.evaluation.exact_cost.methods import method_of

ON_GPU = tuple(name for name in METHODS if name != "mom")


@dataclass(frozen=True)
class Row:
    """One method at one length. Times in seconds; without figures if memory ran out.

    Attributes:
        bytes: allocated at the peak, without the weights; None on the CPU.
    """

    method: str
    prompt_tokens: int
    bytes: int | None = None
    ttft_s: float | None = None
    decode_tokens_per_s: float | None = None


def main(arguments: Sequence[str] | None = None) -> None:
    """The script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--lengths", default="8192,32768")
    parser.add_argument("--methods", default=",".join(ON_GPU))
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--chunk", type=int, default=2048)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    dtype = getattr(torch, options.dtype)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=dtype)
    model = model.to(options.device).eval().requires_grad_(False)
    rows = []
    for method in options.methods.split(","):
        for length in map(int, options.lengths.split(",")):
            rows.append(measured(model, method, length, options.new_tokens, options.chunk))
            print(_line(rows[-1]), flush=True)
            if rows[-1].ttft_s is None:
                break
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def measured(model: PreTrainedModel, method: str, length: int, new: int, chunk: int) -> Row:
    """Reads random tokens, then as many as `new` one by one."""
    on_gpu = model.device.type == "cuda"
    generator = torch.Generator().manual_seed(0)
    vocabulary = model.config.get_text_config().vocab_size
    tokens = torch.randint(vocabulary, (1, length + new), generator=generator).to(model.device)
    weights = 0
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        weights = torch.cuda.memory_allocated()
    name, dtype = str(model.name_or_path), str(model.dtype).removeprefix("torch.")
    case = MemoryCase(method, name, length, new, threads=1, chunk=chunk, dtype=dtype)
    reading = method_of(case, model)
    try:
        prefill = _seconds(lambda: reading.read(tokens[:, :length]), on_gpu)
        decode = _seconds(
            lambda: [reading.read(tokens[:, at : at + 1]) for at in range(length, length + new)],
            on_gpu,
        )
    except torch.OutOfMemoryError:
        return Row(method, length)
    finally:
        applied = getattr(reading, "applied", None)
        if applied is not None:
            applied.remove()
    peak = torch.cuda.max_memory_allocated() - weights if on_gpu else None
    return Row(method, length, peak, prefill, new / decode)


def _seconds(work: Callable[[], object], on_gpu: bool) -> float:
    started = time.perf_counter()
    work()
    if on_gpu:
        torch.cuda.synchronize()
    return time.perf_counter() - started


def _line(row: Row) -> str:
    if row.ttft_s is None:
        return f"| {row.method} | {row.prompt_tokens:,} | out of memory | – | – |"
    memory = "–" if row.bytes is None else f"{row.bytes / 1e9:.2f} GB"
    figures = f"{row.ttft_s:.2f} s | {row.decode_tokens_per_s:.1f} t/s"
    return f"| {row.method} | {row.prompt_tokens:,} | {memory} | {figures} |"


if __name__ == "__main__":
    main()
