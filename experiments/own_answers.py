"""A second network that learns what the model's own answers ask for, beside a repetition.

    python experiments/own_answers.py SCORER.safetensors [--passes 32] [--own 0.5]

The scorer that ships for SmolLM2 gets other second networks. In each pass the model reads a text,
repeats it (KVzip, arXiv 2505.23416), and, apart from that, answers a request about it in its own
words, four times by chance. A pair's target is the mean of two logarithms: of the largest attention
that the repetition pays it, and of the largest that the answers pay. Texts are those of
`train-scorer`, of the books in the package and Python's library. `export --scorer` takes the file.

Letters: L layers, K KV heads, T tokens of the text, n pairs that are kept of a pass, D head
dimension, F hidden width.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from slot_masks import HIDDEN_ATTENTION, Hidden
from slots_at_question import prefill
from transformers import DynamicCache, PreTrainedModel

from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.checkpoint.loading import DEMO_MODEL, Backbone, load_backbone
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.rotary import RotaryTable
from edgeinfinite.models.recall.scorer import REPEATS_WIDTH
from edgeinfinite.models.recall.scorer_file import save_scorers
from edgeinfinite.training.books import BOOKS
from edgeinfinite.training.scorer.base import read_base
from edgeinfinite.training.scorer.fit import fit_networks
from edgeinfinite.training.scorer.options import ScorerOptions
from edgeinfinite.training.scorer.repetition import REQUEST, composers
from edgeinfinite.training.texts import encode, find_documents

REQUESTS = (
    "Write a one-page summary of the text above.",
    "What are the main points of the text?",
    "Who and what is mentioned in the text, and what is said about it?",
    "Tell in detail what stands in the text, from its beginning to its end.",
    "Write a question about the text, and its answer.",
)
BEGIN, ASK, SAY = "<|im_start|>user\n", "\n\n", "<|im_end|>\n<|im_start|>assistant\n"
TOKENS, KEPT = 1980, 1024
ANSWERS, ANSWER_TOKENS, TEMPERATURE = 4, 128, 0.8
PART, FLOOR = 256, 1e-6


def paid(model: PreTrainedModel, cache: DynamicCache, tokens: Sequence[int]) -> torch.Tensor:
    """`[L, K, T]`, the largest weight that tokens after the text pay; the cache stays as it was."""
    before = at = cache.get_seq_length()
    largest = torch.zeros(())
    for start in range(0, len(tokens), PART):
        part = tokens[start : start + PART]
        hidden = Hidden([None] * model.config.num_hidden_layers, watch=True)
        with torch.inference_mode(), attention_implementation(model, HIDDEN_ATTENTION):
            model(
                input_ids=torch.tensor([part]),
                past_key_values=cache,
                position_ids=torch.arange(at, at + len(part))[None],
                logits_to_keep=1,
                edgeinfinite_hidden=hidden,
            )
        at += len(part)
        largest = largest.maximum(torch.stack([of[:, :before] for of in hidden.paid]))
    cache.crop(before - at)
    return largest


def answers(
    model: PreTrainedModel, cache: DynamicCache, asked: list[int], forbidden: list[int]
) -> list[list[int]]:
    """Answers of equal length, drawn by chance; `forbidden` tokens would end them."""
    own = copy.deepcopy(cache)
    own.batch_repeat_interleave(ANSWERS)
    at, part, said = cache.get_seq_length(), torch.tensor([asked] * ANSWERS), []
    with torch.inference_mode(), attention_implementation(model, "sdpa"):
        for _ in range(ANSWER_TOKENS):
            places = torch.arange(at, at + part.shape[1])[None].expand(ANSWERS, -1)
            out = model(input_ids=part, past_key_values=own, position_ids=places, logits_to_keep=1)
            logits = out.logits[:, -1].float().clone()
            logits[:, forbidden] = float("-inf")
            at, part = at + part.shape[1], torch.multinomial((logits / TEMPERATURE).softmax(-1), 1)
            said.append(part)
    return torch.cat(said, dim=1).tolist()


def one_pass(
    backbone: Backbone, body: list[int], request: str, tables: Sequence[RotaryTable], own: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs `[L, K, n, 2D]` float16 and targets `[L, K, n]` of a text.

    Args:
        backbone: reads and answers.
        body: the text.
        request: what it shall answer.
        tables: RoPE of every layer.
        own: weight of the answers, 0 to 1; the rest is the repetition's.
    """
    model, tokenizer = backbone.model, backbone.tokenizer
    with torch.inference_mode():
        cache = prefill(model, encode(BEGIN, tokenizer) + body)
    repeated = paid(model, cache, encode(REQUEST, tokenizer) + body)
    asked = encode(ASK + request + SAY, tokenizer)
    ends = [int(token) for token in tokenizer.all_special_ids]
    told = [paid(model, cache, asked + said) for said in answers(model, cache, asked, ends)]
    places = torch.randperm(cache.get_seq_length() - 8)[:KEPT].sort().values + 8
    inputs = torch.stack(
        [
            torch.cat(
                (table.shift_back(of.keys[0][:, places], places), of.values[0][:, places]), dim=-1
            ).half()
            for table, of in zip(tables, cache.layers, strict=True)
        ]
    )
    logs = [of[..., places].clamp(min=FLOOR).log() for of in (repeated, torch.stack(told).amax(0))]
    return inputs, (1 - own) * logs[0] + own * logs[1]


def main() -> None:
    """Collects the passes, fits the networks, writes the scorer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--passes", type=int, default=32)
    parser.add_argument("--own", type=float, default=0.5, help="weight of the answers")
    options = parser.parse_args()
    backbone = load_backbone(DEMO_MODEL)
    base = read_base(Path(str(resolve(backbone, ModelOptions()).config.scorer)), backbone)
    kinds = composers(find_documents((BOOKS,)), backbone.tokenizer, TOKENS, 8, [])
    tables = rotary_tables(backbone.model, 2 * TOKENS + PART)
    if torch.cpu._is_avx512_bf16_supported():
        backbone.model.bfloat16()
    passes = []
    for index in range(options.passes):
        torch.manual_seed(index)
        turn, kind = divmod(index, len(kinds))
        body = kinds[kind](turn, np.random.default_rng(900 + index))[:TOKENS]
        request = REQUESTS[turn % len(REQUESTS)]
        passes.append(one_pass(backbone, body, request, tables, options.own))
        print(f"{index + 1} of {options.passes} passes", flush=True)
    inputs, wanted = (torch.cat(parts, dim=2) for parts in zip(*passes, strict=True))
    torch.manual_seed(0)
    networks = [scorer.add_repeats(REPEATS_WIDTH) for scorer in base.scorers]
    settings = ScorerOptions(model=DEMO_MODEL, output=options.output)
    fit_networks(networks, inputs, wanted, settings, lambda done, loss: None)
    for scorer in base.scorers:
        if scorer.streams:
            scorer.repeats = None
    save_scorers(options.output, [of.half() for of in base.scorers], base.rule, base.card)


if __name__ == "__main__":
    main()
