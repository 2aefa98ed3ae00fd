"""What a text's repetition asks for, as ranks for the slots, and how many slots each head needs.

    python experiments/repeated_text.py LONGBENCH ROWS.jsonl [--rows-per-task 3]

KVzip (arXiv 2505.23416) ranks a pair by the largest attention that it is paid while the model
repeats the text. Here these ranks fill the slots in `slots_at_question.py`'s way: full attention
reads the context, then pairs are hidden from question and answer. What differs is how many slots a
head gets of the same total: as many in every layer, as the best ranks of all heads together fall
(`heads`), or the same for the heads of a layer, by the one that needs most (`layers`). Budgets come
from the other rows, so a row doesn't choose its own. Finished rows are kept; what was repeated lies
in ROWS.jsonl.repeated.

Letters: L layers, K KV heads, T tokens of the context.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from slot_masks import HIDDEN_ATTENTION, Hidden, fill
from slots_at_question import (
    ANSWER,
    LEAST_QUERIES,
    LONGEST,
    Way,
    geometry_of,
    predictions,
    prefill,
    ranks,
)
from transformers import DynamicCache, PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.evaluation.longbench.cases import longbench_cases
from edgeinfinite.evaluation.longbench.folder import read_folder
from edgeinfinite.evaluation.longbench.options import LongBenchOptions
from edgeinfinite.evaluation.longbench.tasks import chosen_tasks
from edgeinfinite.evaluation.questions.measure import Case
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.checkpoint.loading import DEMO_MODEL, Backbone, load_backbone
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.models.recall.scorer_file import load_scorers, read_rank_rule
from edgeinfinite.training.texts import encode

SHORTEST = 2600
PART, CHUNK = 1024, 512
SLOTS = (512, 1664)
"""Recall slots of an average layer: the default, and int8 caches of the same bytes."""


def repeated(model: PreTrainedModel, cache: DynamicCache, ask: list[int], text: list[int]) -> Any:
    """`[L, K, T]`, the largest weight that a pair is paid while the text is repeated in parts."""
    tokens = cache.get_seq_length()
    with attention_implementation(model, "sdpa"):
        model(input_ids=torch.tensor([ask]), past_key_values=cache, logits_to_keep=1)
    largest = torch.zeros(())
    for start in range(0, len(text), PART):
        for begin in range(start, min(start + PART, len(text)), CHUNK):
            chunk = text[begin : min(begin + CHUNK, start + PART)]
            place = cache.get_seq_length()
            watched = Hidden([None] * len(cache.layers), watch=True)
            with attention_implementation(model, HIDDEN_ATTENTION):
                model(
                    input_ids=torch.tensor([chunk]),
                    past_key_values=cache,
                    position_ids=torch.arange(place, place + len(chunk))[None],
                    logits_to_keep=1,
                    edgeinfinite_hidden=watched,
                )
            largest = largest.maximum(torch.stack([paid[:, :tokens] for paid in watched.paid]))
        cache.crop(tokens + len(ask) - cache.get_seq_length())
    cache.crop(-len(ask))
    return largest


def certain(geometry: Geometry, tokens: int) -> torch.Tensor:
    """`[T]` bool: sinks, window, and half a segment beside it."""
    places = torch.arange(tokens)
    window = tokens - geometry.window_length - geometry.segment_length // 2
    return (places < geometry.sink_length) | (places >= window)


def shares(rank: torch.Tensor, geometry: Geometry, slots: int) -> torch.Tensor:
    """`[L, K]`, how many of the best pairs of all heads together lie in each."""
    layers, heads, tokens = rank.shape
    value = rank.float().masked_fill(certain(geometry, tokens), -1.0).flatten()
    best = torch.zeros_like(value)
    best[value.topk(min(slots * layers * heads, int((value >= 0).sum()))).indices] = 1.0
    return best.view(rank.shape).sum(-1)


def divided(share: torch.Tensor, total: float, most: int) -> torch.Tensor:
    """Slots `[L, K]` in these shares, none above `most`, of as many in all."""
    slots, left = torch.zeros_like(share), total
    for _ in range(50):
        open_ = share * (slots < most)
        if left < 1 or not open_.any():
            break
        slots = (slots + left * open_ / open_.sum()).clamp(max=most)
        left = total - float(slots.sum())
    return slots.round()


def kept(rank: torch.Tensor, geometry: Geometry, slots: torch.Tensor) -> list[torch.Tensor]:
    """Of each layer `[K, T]` bool, so many of each head's best, sinks and window."""
    always = certain(geometry, rank.shape[-1])
    order = rank.float().masked_fill(always, float("-inf")).argsort(-1, descending=True)
    place = torch.empty_like(order).scatter_(
        -1, order, torch.arange(order.shape[-1]).expand_as(order)
    )
    return list((place < slots.unsqueeze(-1)) | always)


def prepare(backbone: Backbone, case: Case, path: Path) -> dict[str, Any]:
    """A row's tokens, and what its repetition pays."""
    built = case.prompts.build(case.question, LONGEST)
    answer = case.prompts.answer(case.question, case.question.answers[0])[:ANSWER]
    first = min(built.question, len(built.tokens) - LEAST_QUERIES)
    row = {"text": list(built.tokens[:first]), "asked": [*built.tokens[first:], *answer]}
    if not path.exists():
        ask = encode("\n\nRepeat the previous context:\n", backbone.tokenizer)
        cache = prefill(backbone.model, row["text"])
        torch.save(repeated(backbone.model, cache, ask, row["text"]).half(), path)
    return {**row, "answer": len(answer), "path": path, "key": case.key}


def measure(backbone: Backbone, row: dict[str, Any], others: list[Path]) -> dict[str, Any]:
    """KL to full attention's predictions, and nats of the answer above its, of each way."""
    model, rank = backbone.model, torch.load(row["path"])
    layers, heads, tokens = rank.shape
    facts = architecture_of(model)
    path = Path(str(resolve(backbone, ModelOptions()).config.scorer))
    scorers = load_scorers(path, layers, heads, facts.head_dim)
    rule = read_rank_rule(path)
    cache = prefill(model, row["text"])
    teacher = predictions(model, cache, row["asked"], Hidden([None] * layers))
    scored = ranks(model, cache, scorers, rule)
    gold = torch.tensor(row["asked"][-row["answer"] :])[:, None]
    found: dict[str, Any] = {**row["key"], "tokens": tokens}

    def note(name: str, pairs: list[torch.Tensor]) -> None:
        student = predictions(model, cache, row["asked"], Hidden(pairs))
        lost = (teacher - student)[-row["answer"] - 1 : -1].gather(1, gold).mean()
        kl = (teacher.exp() * (teacher - student)).sum(-1).mean()
        found[name] = [float(kl), float(lost)]

    for slots in SLOTS:
        geometry = geometry_of(backbone, Way(slots))
        ships = [
            fill(geometry, layer, tokens, rule, scored[layer], scorer.retrieval.bool())
            for layer, scorer in enumerate(scorers)
        ]
        note(f"shipped, {slots}", ships)
        total, most = slots * layers * heads, int((~certain(geometry, tokens)).sum())
        share = torch.stack([shares(torch.load(o), geometry, slots) for o in others]).mean(0) + 1
        by_layer = share.amax(1, keepdim=True).expand_as(share)
        for name, of in {
            "flat": torch.ones_like(share),
            "heads": share,
            "layers": by_layer,
        }.items():
            note(f"repeated, {name}, {slots}", kept(rank, geometry, divided(of, total, most)))
    return found


def main() -> None:
    """Repeats the texts, measures the rows that the file lacks, prints the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--tasks", default="qasper,multifieldqa_en,hotpotqa,2wikimqa")
    parser.add_argument("--rows-per-task", type=int, default=3)
    args = parser.parse_args()
    backbone = load_backbone(DEMO_MODEL)
    resolve(backbone, ModelOptions())
    backbone.model.bfloat16()
    options = LongBenchOptions(
        rows_per_task=args.rows_per_task, max_tokens=LONGEST, min_tokens=SHORTEST
    )
    data = read_folder(args.data, chosen_tasks(args.tasks.split(",")))
    folder = Path(f"{args.rows}.repeated")
    folder.mkdir(exist_ok=True)
    rows = [json.loads(line) for line in args.rows.open()] if args.rows.exists() else []
    done = {(row["task"], row["row"]) for row in rows}
    with torch.inference_mode():
        texts = []
        for case in longbench_cases(data, backbone.tokenizer, options):
            name = str(case.key["row"]).replace(":", "_")
            texts.append(prepare(backbone, case, folder / f"{name}.pt"))
            print(case.key, "repeated", flush=True)
        for row in texts:
            if (row["key"]["task"], row["key"]["row"]) in done:
                continue
            others = [other["path"] for other in texts if other is not row]
            rows.append(measure(backbone, row, others))
            with args.rows.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(rows[-1], flush=True)
    for name in (key for key, value in rows[0].items() if isinstance(value, list)):
        kl, lost = (statistics.mean(row[name][i] for row in rows) for i in (0, 1))
        print(f"{name:28} KL {kl:.4f}, nats above full attention {lost:+.3f}")


if __name__ == "__main__":
    main()
