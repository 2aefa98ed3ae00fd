"""What the best scorer could win: recall slots filled by what question and answer will attend to.

    python experiments/oracle_slots.py LONGBENCH ROWS.jsonl [--tasks qasper,trec] [--rows 2]

Full attention reads the whole prompt with its gold answer and says how much every query of
question and answer attends to every pair. The slots are then filled by that, which no scorer can
know in advance, instead of by the trained one: the rest of the gap to full attention isn't the
scorer's. Rows: nats per token of the gold answer, one JSON object a case; finished ones are kept.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from edgeinfinite.evaluation.longbench.cases import longbench_cases
from edgeinfinite.evaluation.longbench.folder import read_folder
from edgeinfinite.evaluation.longbench.options import LongBenchOptions
from edgeinfinite.evaluation.longbench.tasks import chosen_tasks
from edgeinfinite.evaluation.methods import Reader, _MeasuringEngine
from edgeinfinite.evaluation.options import Setting
from edgeinfinite.evaluation.questions.measure import Case
from edgeinfinite.models.attach import attention_layers, rank_rule_of
from edgeinfinite.models.attention import attention_implementation
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.models.loading import DEMO_MODEL, Backbone, load_backbone
from edgeinfinite.models.recall.scorer import RetentionScorer

LONGEST = 7900
CHUNK = 512
LEAST_QUERIES = 32
"""Last tokens of the prompt that count as its question, if the question is shorter."""


class OracleScorer(RetentionScorer):
    """Scores evicted pairs, which come in the order of the text, by a table.

    Args:
        table: `[K, T]` float32, of the text's tokens.
        first: the first token that can be evicted: the number of sinks.
        retrieval: `[K, 1]` float32, 1 for heads that score.
    """

    def __init__(self, table: torch.Tensor, first: int, retrieval: torch.Tensor) -> None:
        super().__init__(len(table), 1)
        self._table, self._next = table, first
        self.retrieval.copy_(retrieval)
        self.retrieval_heads = int(retrieval.sum())

    def forward(self, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """The next scores, `[1, K, n]`."""
        start, self._next = self._next, self._next + key.shape[-2]
        return self._table[None, :, start : self._next]


def attended(model: PreTrainedModel, tokens: list[int], first: int) -> tuple[torch.Tensor, float]:
    """How much the queries from `first` on attend to each token, with full attention.

    Returns:
        `[L, K, T]`: the largest weight over these queries and the query heads of a KV head.
    """
    ids, cache = torch.tensor([tokens]), DynamicCache()
    with torch.inference_mode():
        with attention_implementation(model, "sdpa"):
            for start in range(0, first, CHUNK):
                part = ids[:, start : min(start + CHUNK, first)]
                model(input_ids=part, past_key_values=cache, logits_to_keep=1)
        with attention_implementation(model, "eager"):
            out = model(input_ids=ids[:, first:], past_key_values=cache, output_attentions=True)
    heads = model.config.num_key_value_heads
    weights = [w[0].amax(1).unflatten(0, (heads, -1)).amax(1) for w in out.attentions]
    return torch.stack(weights), out.logits[0].float()


def standardised(weights: torch.Tensor) -> torch.Tensor:
    """Their logarithms with mean 0 and deviation 1 for each head, `[L, K, T]`."""
    scores = weights.clamp(min=1e-7).log()
    return (scores - scores.mean(-1, keepdim=True)) / scores.std(-1, keepdim=True)


def nats_of(reader: Reader, prompt: list[int], answer: list[int]) -> float:
    """Nats per token of the answer after the prompt."""
    reader.skip(prompt)
    return float(reader.read(answer).nats.mean())


def with_oracle(
    model: PreTrainedModel, setting: Setting, scores: torch.Tensor, *, all_heads: bool, rule: dict
) -> Reader:
    """The default's geometry with other scores in its slots.

    Args:
        model: attached anew.
        setting: the default's.
        scores: `[L, K, T]`.
        all_heads: whether every head keeps the highest scores, not the retrieval heads alone.
        rule: what is changed in the scorer's rank rule.
    """
    reader = Reader(model, "edgeinfinite", setting, scores.shape[-1])
    for layer, table in zip(attention_layers(model), scores, strict=True):
        retrieval = layer.retention_scorer.retrieval
        retrieval = torch.ones_like(retrieval) if all_heads else retrieval
        oracle = OracleScorer(table, setting.geometry.sink_length, retrieval)
        oracle.keep_threshold.copy_(layer.retention_scorer.keep_threshold)
        oracle.head_weights.copy_(layer.retention_scorer.head_weights)
        layer.retention_scorer = oracle
    model.edgeinfinite_rank_rule = replace(rank_rule_of(model), **rule)
    reader._engine = _MeasuringEngine(model, None)
    reader.restart()
    return reader


OWN = {"pooled_share": 0.0, "neighbours_share": 0.0}
ORACLES: dict[str, tuple[bool, dict[str, Any]]] = {
    "oracle": (False, OWN),
    "oracle-neighbours": (False, {"pooled_share": 0.0}),
    "oracle-pooled": (False, {}),
    "oracle-all-heads": (True, OWN),
}


def measure(backbone: Backbone, setting: Setting, case: Case) -> Iterator[tuple[str, float]]:
    """Every method's nats per token of the first gold answer."""
    model = backbone.model
    prompt = case.prompts.build(case.question, LONGEST)
    answer = case.prompts.answer(case.question, case.question.answers[0])
    tokens = [*prompt.tokens, *answer]
    first = min(prompt.question, len(prompt.tokens) - LEAST_QUERIES)
    weights, logits = attended(model, tokens, first)
    logits = logits[len(prompt.tokens) - first - 1 : -1]
    yield "full", float(torch.nn.functional.cross_entropy(logits, torch.tensor(answer)))
    for method in ("streaming", "edgeinfinite"):
        reader = Reader(model, method, setting, len(tokens))
        yield method, nats_of(reader, prompt.tokens, answer)
    scores = torch.nn.functional.pad(standardised(weights), (0, 512))
    for name, (all_heads, rule) in ORACLES.items():
        reader = with_oracle(model, setting, scores, all_heads=all_heads, rule=rule)
        yield name, nats_of(reader, prompt.tokens, answer)


def main() -> None:
    """Measures what the file of rows lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--tasks", default="en,code")
    parser.add_argument("--rows-per-task", type=int, default=2)
    args = parser.parse_args()
    backbone = load_backbone(DEMO_MODEL)
    config = resolve(backbone, ModelOptions(cache_type="float16")).config
    setting = Setting(config.geometry, scorer=config.scorer, cache_type="float16")
    options = LongBenchOptions(
        rows_per_task=args.rows_per_task, max_tokens=LONGEST, min_tokens=2000
    )
    tasks = chosen_tasks(args.tasks.split(","))
    done = set()
    if args.rows.exists():
        done = {(r["task"], r["row"]) for r in map(json.loads, args.rows.open())}
    for case in longbench_cases(read_folder(args.data, tasks), backbone.tokenizer, options):
        if (case.key["task"], case.key["row"]) in done:
            continue
        row = {**case.key, **dict(measure(backbone, setting, case))}
        with args.rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main()
