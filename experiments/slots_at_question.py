"""Which part of the loss is the choice of pairs, and which is their number?

    python experiments/slots_at_question.py LONGBENCH ROWS.jsonl [--rows-per-task 2]

Full attention reads the context. Then each way to fill the slots hides the pairs that it wouldn't
have, for question and answer, all at their true positions. One prefill serves every way, so twenty
ways cost little more than one. An oracle knows what the question will attend to, which no scorer
can know in advance: it says how much a better choice could win in as many slots. What is measured
is how far the predictions of question and answer move from full attention's, in nats a token (KL
divergence), with far less noise than the loss of a short answer has. Finished rows are kept.

Letters: L layers, K KV heads, T tokens of the context, S sinks, G recall slots, D head dimension.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from slot_masks import HIDDEN_ATTENTION, Hidden, fill
from transformers import DynamicCache, PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.evaluation.longbench.cases import longbench_cases
from edgeinfinite.evaluation.longbench.folder import read_folder
from edgeinfinite.evaluation.longbench.options import LongBenchOptions
from edgeinfinite.evaluation.longbench.tasks import chosen_tasks
from edgeinfinite.evaluation.questions.measure import Case
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.checkpoint.loading import DEMO_MODEL, Backbone, load_backbone
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.models.geometry_options import GeometryOptions
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.ranking import pooled_scores, with_neighbours
from edgeinfinite.models.recall.scorer import RetentionScorer
from edgeinfinite.models.recall.scorer_file import load_scorers, read_rank_rule

LONGEST = 7900
SHORTEST = 1400
CHUNK = 512
LEAST_QUERIES = 16
"""Last tokens of the prompt that count as its question, if the question is shorter."""
_NO_RECENCY = 1e-12
ANSWER = 128
"""Most tokens of an answer."""


@dataclass(frozen=True)
class Way:
    """A way to fill the slots.

    Args:
        slots: recall slots in an average layer, as `--recall-slots trained:G` divides them.
        flat: the same slots in every layer.
        oracle: ranks are the attention that question and answer pay.
        all_heads: every head fills its slots by rank, not the retrieval heads alone.
        streaming: no head does.
    """

    slots: int
    flat: bool = False
    oracle: bool = False
    all_heads: bool = False
    streaming: bool = False

    def rule(self, trained: RankRule) -> RankRule:
        """The scorer's rule; an oracle gains nothing from what is new."""
        if not self.oracle:
            return trained
        newest = 0.0 if self.all_heads else trained.newest_share
        return replace(trained, recency=_NO_RECENCY, newest_share=newest)


WAYS = {
    "streaming": Way(512, flat=True, streaming=True),
    "shipped": Way(512),
    "shipped, twice the slots": Way(1664),
    "streaming, twice the slots": Way(1664, flat=True, streaming=True),
    "shipped, the paper's bytes": Way(1920),
    "oracle, retrieval heads": Way(512, oracle=True),
    "oracle, all heads": Way(512, flat=True, oracle=True, all_heads=True),
    "oracle, all heads, half the recall slots": Way(256, flat=True, oracle=True, all_heads=True),
}
"""Twice the slots: 2,304 in all, what an int8 cache would hold in the default's bytes."""


def geometry_of(backbone: Backbone, way: Way) -> Geometry:
    """What `export --recall-slots` makes of these slots."""
    slots = way.slots if way.flat else f"trained:{way.slots}"
    return resolve(backbone, ModelOptions(GeometryOptions(recall_slots=slots))).config.geometry


def prefill(model: PreTrainedModel, tokens: Sequence[int]) -> DynamicCache:
    """Keys and values of full attention."""
    cache = DynamicCache()
    with attention_implementation(model, "sdpa"):
        for start in range(0, len(tokens), CHUNK):
            part = torch.tensor([tokens[start : start + CHUNK]])
            model(input_ids=part, past_key_values=cache, logits_to_keep=1)
    return cache


def predictions(
    model: PreTrainedModel, cache: DynamicCache, tokens: Sequence[int], hidden: Hidden
) -> torch.Tensor:
    """`[n, V]` log-probabilities after each of n tokens; the cache is as it was afterwards."""
    before = cache.get_seq_length()
    places = torch.arange(before, before + len(tokens))[None]
    with attention_implementation(model, HIDDEN_ATTENTION):
        out = model(
            input_ids=torch.tensor([tokens]),
            past_key_values=cache,
            position_ids=places,
            edgeinfinite_hidden=hidden,
        )
    cache.crop(-len(tokens))
    return out.logits[0].float().log_softmax(-1)


def ranks(
    model: PreTrainedModel, cache: DynamicCache, scorers: list[RetentionScorer], rule: RankRule
) -> list[torch.Tensor | None]:
    """Of each layer `[K, T]`, without recency; None where every head streams."""
    tokens = cache.get_seq_length()
    tables, places = rotary_tables(model, tokens), torch.arange(tokens)
    scoring = [i for i, scorer in enumerate(scorers) if not scorer.streams]
    own = [
        scorers[i](tables[i].shift_back(cache.layers[i].keys, places), cache.layers[i].values)
        for i in scoring
    ]
    pooled = pooled_scores(own, [scorers[i] for i in scoring], rule)
    found = dict(zip(scoring, pooled, strict=True))
    return [with_neighbours(found[i], rule)[0] if i in found else None for i in range(len(scorers))]


def measure(backbone: Backbone, setting: dict[str, Any], case: Case) -> dict[str, Any]:
    """KL divergence of each way, mean over the tokens of question and answer."""
    model, scorers, rule = backbone.model, setting["scorers"], setting["rule"]
    built = case.prompts.build(case.question, LONGEST)
    prompt = built.tokens
    answer = case.prompts.answer(case.question, case.question.answers[0])[:ANSWER]
    first = min(built.question, len(prompt) - LEAST_QUERIES)
    cache = prefill(model, prompt[:first])
    asked = [*prompt[first:], *answer]
    everything = Hidden([None] * len(scorers), watch=True)
    teacher = predictions(model, cache, asked, everything)
    scored = ranks(model, cache, scorers, rule)
    row: dict[str, Any] = {"tokens": len(prompt)}
    for name, way in WAYS.items():
        geometry = setting["geometries"][way]
        kept = []
        for layer, scorer in enumerate(scorers):
            by_rank = torch.ones_like(scorer.retrieval) if way.all_heads else scorer.retrieval
            rank = everything.paid[layer] if way.oracle else scored[layer]
            rank = None if way.streaming else rank
            kept.append(fill(geometry, layer, first, way.rule(rule), rank, by_rank.bool()))
        student = predictions(model, cache, asked, Hidden(kept))
        row[name] = float((teacher.exp() * (teacher - student)).sum(-1).mean())
    return row


def main() -> None:
    """Measures what the file of rows lacks, then prints the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--tasks", default="en,code")
    parser.add_argument("--rows-per-task", type=int, default=2)
    args = parser.parse_args()
    backbone = load_backbone(DEMO_MODEL)
    config = resolve(backbone, ModelOptions()).config
    facts = architecture_of(backbone.model)
    path = Path(str(config.scorer))
    scorers = load_scorers(path, len(facts.layers), facts.kv_heads, facts.head_dim)
    setting: dict[str, Any] = {"scorers": scorers, "rule": read_rank_rule(path)}
    setting["geometries"] = {way: geometry_of(backbone, way) for way in WAYS.values()}
    backbone.model.bfloat16()
    options = LongBenchOptions(
        rows_per_task=args.rows_per_task, max_tokens=LONGEST, min_tokens=SHORTEST
    )
    data = read_folder(args.data, chosen_tasks(args.tasks.split(",")))
    rows = [json.loads(line) for line in args.rows.open()] if args.rows.exists() else []
    done = {(row["task"], row["row"]) for row in rows}
    with torch.inference_mode():
        for case in longbench_cases(data, backbone.tokenizer, options):
            if (case.key["task"], case.key["row"]) in done:
                continue
            rows.append({**case.key, **measure(backbone, setting, case)})
            with args.rows.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(rows[-1], flush=True)
    for name in WAYS:
        print(f"{name:44}{statistics.mean(row[name] for row in rows):.4f}")


if __name__ == "__main__":
    main()
