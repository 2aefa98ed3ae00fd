"""What it costs that kept pairs move: recall slots at their true positions, beside what ships.

    python experiments/true_positions.py LONGBENCH ROWS.jsonl [--rows-per-task 4]

Under `carry` a token's position is its slot, so a pair of 4,000 tokens ago stands 1,000 positions
before the newest one. Here the same pairs stay where they stood in the text, which any backbone
takes up to the positions it was trained on. Nothing else differs: slots, scorer, rank rule and
bytes are the same (but for a number a slot). Sessions are simulated in bfloat16, outside the
product. What is measured is how far the predictions of the gold answer move from full attention's,
in nats a token (KL divergence), and their loss less full attention's. Finished rows are kept.

Letters: L layers, K KV heads, T tokens, S sinks, G recall slots, N segment, W window, D head
dimension.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from slots_at_question import prefill
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.evaluation.longbench.cases import longbench_cases
from edgeinfinite.evaluation.longbench.folder import read_folder
from edgeinfinite.evaluation.longbench.options import LongBenchOptions
from edgeinfinite.evaluation.longbench.tasks import chosen_tasks
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.checkpoint.loading import DEMO_MODEL, load_backbone
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.models.geometry_options import GeometryOptions
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.ranking import pooled_scores, with_neighbours
from edgeinfinite.models.recall.rotary import RotaryTable
from edgeinfinite.models.recall.scorer import RetentionScorer
from edgeinfinite.models.recall.scorer_file import load_scorers, read_rank_rule

ANSWER = 128
"""Most tokens of an answer."""
_ATTENTION = "edgeinfinite-simulated"


class Simulated:
    """A session of policy `carry` whose pairs may stay at their true positions.

    Args:
        model: a Llama-like backbone, any dtype.
        geometry: S, G by layer, N, W.
        scorers, rule: fill the slots; a geometry without slots needs none of them.
        true_positions: whether pairs keep the positions of the text; else they move as in `carry`.
        longest: most tokens of a text.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        geometry: Geometry,
        scorers: Sequence[RetentionScorer],
        rule: RankRule,
        *,
        true_positions: bool,
        longest: int,
    ) -> None:
        facts = architecture_of(model)
        self._model, self._geometry, self._rule = model, geometry, rule
        self._scorers, self._true = scorers, true_positions
        self._tables: list[RotaryTable] = rotary_tables(model, longest + 1)
        empty = torch.zeros(facts.kv_heads, 0, facts.head_dim, dtype=model.dtype)
        self.keys = [empty for _ in scorers]
        self.values = [empty for _ in scorers]
        self.places = [torch.zeros(facts.kv_heads, 0, dtype=torch.int64) for _ in scorers]
        self._scores: list[torch.Tensor | None] = [None for _ in scorers]
        self._next = self._residual = self._sinks = 0

    def read(self, tokens: Sequence[int], *, every: bool = False) -> torch.Tensor:
        """`[n, V]` logits after each token, or after the last one alone."""
        logits, at, geometry = [], 0, self._geometry
        while at < len(tokens):
            room = geometry.window_length + geometry.segment_length - self._residual
            most = min(geometry.segment_length, room)
            if self._sinks < geometry.sink_length:
                most = geometry.sink_length - self._sinks
            part = tokens[at : at + most]
            logits.append(self._run(part, 0 if every else 1))
            at += len(part)
            if self._sinks < geometry.sink_length:
                self._sinks += len(part)
                continue
            self._residual += len(part)
            if self._residual == geometry.window_length + geometry.segment_length:
                self._compress()
        return torch.cat(logits) if every else logits[-1]

    def _run(self, tokens: Sequence[int], kept: int) -> torch.Tensor:
        places = torch.arange(self._next, self._next + len(tokens))
        self._next += len(tokens)
        with torch.inference_mode(), attention_implementation(self._model, _ATTENTION):
            out = self._model(
                input_ids=torch.tensor([list(tokens)]),
                position_ids=places[None],
                use_cache=False,
                logits_to_keep=kept,
                edgeinfinite_session=self,
                edgeinfinite_places=places,
            )
        return out.logits[0].float()

    def add(self, layer: int, key: torch.Tensor, value: torch.Tensor, places: torch.Tensor) -> None:
        """Appends pairs `[K, n, D]` at positions `[n]`."""
        self.keys[layer] = torch.cat((self.keys[layer], key), 1)
        self.values[layer] = torch.cat((self.values[layer], value), 1)
        self.places[layer] = torch.cat((self.places[layer], places.expand(len(key), -1)), 1)

    def _evicted_scores(self) -> Iterator[tuple[int, torch.Tensor]]:
        """By layer the scores `[K, N]` of the N tokens that leave the window."""
        end = -self._geometry.window_length
        start = end - self._geometry.segment_length
        scoring = [i for i, scorer in enumerate(self._scorers) if not scorer.streams]
        own = []
        for i in scoring:
            raw = self._tables[i].shift_back(
                self.keys[i][:, start:end], self.places[i][:, start:end]
            )
            own.append(self._scorers[i](raw[None], self.values[i][None, :, start:end]))
        pooled = pooled_scores(own, [self._scorers[i] for i in scoring], self._rule)
        for i, scores in zip(scoring, pooled, strict=True):
            yield i, scores[0]

    @torch.inference_mode()
    def _compress(self) -> None:
        geometry = self._geometry
        scores = dict(self._evicted_scores()) if geometry.most_slots else {}
        before = max(keys.shape[1] for keys in self.keys)
        for layer in range(len(self.keys)):
            self._evict(layer, scores.get(layer))
        self._residual -= geometry.segment_length
        moved = before - max(keys.shape[1] for keys in self.keys)
        if not self._true:
            self._next -= moved
            for layer in range(len(self.keys)):
                self._move(layer, moved)

    def _evict(self, layer: int, evicted: torch.Tensor | None) -> None:
        geometry = self._geometry
        sinks, slots = geometry.sink_length, geometry.slots_of(layer)
        total = self.keys[layer].shape[1]
        count = total - sinks - geometry.window_length
        order = torch.arange(count)
        known = self._scores[layer]
        scores = None if evicted is None else evicted
        if scores is not None and known is not None:
            scores = torch.cat((known, scores), 1)
        rank = self._ranks(layer, scores, self._rule.recency * order)
        rank = rank.masked_fill(order >= count - self._newest(slots), float("inf"))
        chosen = rank.topk(min(slots, count)).indices.sort(-1).values
        self._scores[layer] = None if scores is None else scores.gather(1, chosen)
        heads = len(chosen)
        rows = torch.cat(
            (
                torch.arange(sinks).expand(heads, -1),
                chosen + sinks,
                torch.arange(total - geometry.window_length, total).expand(heads, -1),
            ),
            1,
        )
        wide = rows[..., None].expand(-1, -1, self.keys[layer].shape[-1])
        self.keys[layer] = self.keys[layer].gather(1, wide)
        self.values[layer] = self.values[layer].gather(1, wide)
        self.places[layer] = self.places[layer].gather(1, rows)

    def _ranks(self, layer: int, scores: torch.Tensor | None, age: torch.Tensor) -> torch.Tensor:
        """`[K, n]` ranks of the n pairs after the sinks; `age` is what being new adds."""
        streaming = age.expand(len(self.keys[layer]), -1)
        if scores is None:
            return streaming
        by_rank = self._scorers[layer].retrieval.bool()
        return torch.where(by_rank, with_neighbours(scores[None], self._rule)[0] + age, streaming)

    def _newest(self, slots: int) -> int:
        """How many of a layer's slots hold what is newest."""
        return self._rule.newest_slots(slots)

    def _move(self, layer: int, moved: int) -> None:
        """As `carry`: retrieval heads' slots stand after the sinks, everything else moves down."""
        sinks, window = self._geometry.sink_length, self._geometry.window_length
        old = self.places[layer]
        total = old.shape[1]
        places = torch.arange(total)
        new = torch.where(places < sinks, old, old - moved)
        if self._geometry.most_slots:
            by_rank = self._scorers[layer].retrieval.bool()
            slots = (places >= sinks) & (places < total - window)
            new = torch.where(slots & by_rank, places, new)
        self.keys[layer] = self._tables[layer].shift_back(self.keys[layer], old - new)
        self.places[layer] = new


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,  # noqa: ARG001  (frozen backbone)
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    session: Simulated = kwargs["edgeinfinite_session"]
    layer: int = module.layer_idx  # type: ignore[assignment]
    session.add(layer, key[0], value[0], kwargs["edgeinfinite_places"])
    return attended(query, session.keys[layer], session.values[layer], scaling), None


def attended(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scaling: float | None
) -> torch.Tensor:
    """`[1, n, H, D]`: causal attention of n queries `[1, H, n, D]`, whose own pairs come last.

    Args:
        query: see above.
        keys, values: `[K, T, D]`.
        scaling: of the products; None: 1 / sqrt(D).
    """
    new, dim = query.shape[2:]
    grouped = query[0].reshape(len(keys), -1, dim)
    scores = (grouped @ keys.transpose(1, 2)).float() * (scaling or dim**-0.5)
    scores = scores.unflatten(1, (-1, new))
    later = torch.ones(new, new, dtype=torch.bool).triu(1)
    scores[..., -new:].masked_fill_(later, float("-inf"))
    mixed = scores.softmax(-1).to(values.dtype).flatten(1, 2) @ values
    return mixed.reshape(1, -1, new, dim).transpose(1, 2)


AttentionInterface.register(_ATTENTION, _attention)
AttentionMaskInterface.register(_ATTENTION, lambda *args, **kwargs: None)


def after_answer(session: Simulated, prompt: Sequence[int], answer: Sequence[int]) -> torch.Tensor:
    """`[n, V]` log-probabilities of each of the answer's n tokens."""
    first = session.read(prompt)
    rest = session.read(answer[:-1], every=True) if len(answer) > 1 else first[:0]
    return torch.cat((first, rest)).log_softmax(-1)


def full_attention(
    model: PreTrainedModel, prompt: Sequence[int], answer: Sequence[int]
) -> torch.Tensor:
    """The same, of the model itself."""
    with torch.inference_mode(), attention_implementation(model, "sdpa"):
        cache = prefill(model, prompt[:-1])
        ids = torch.tensor([[prompt[-1], *answer[:-1]]])
        return model(input_ids=ids, past_key_values=cache).logits[0].float().log_softmax(-1)


def main() -> None:
    """Measures what the file of rows lacks, then prints the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--rows-per-task", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=5600)
    args = parser.parse_args()
    backbone = load_backbone(DEMO_MODEL)
    path = Path(str(resolve(backbone, ModelOptions()).config.scorer))

    def geometry(slots: int | str, window: int | None = None) -> Geometry:
        asked = GeometryOptions(recall_slots=slots, window_length=window)
        return resolve(backbone, ModelOptions(asked)).config.geometry

    ways = {
        "streaming": geometry(0, 960),
        "shipped": geometry("trained"),
        "twice the slots": geometry("trained:1664"),
    }
    facts = architecture_of(backbone.model)
    scorers = load_scorers(path, len(facts.layers), facts.kv_heads, facts.head_dim)
    rule, model = read_rank_rule(path), backbone.model.bfloat16()
    options = LongBenchOptions(
        rows_per_task=args.rows_per_task, max_tokens=args.max_tokens, min_tokens=1900
    )
    data = read_folder(args.data, chosen_tasks(["en", "code"]))
    rows = [json.loads(line) for line in args.rows.open()] if args.rows.exists() else []
    done = {(row["task"], row["row"]) for row in rows}
    for case in longbench_cases(data, backbone.tokenizer, options):
        if (case.key["task"], case.key["row"]) in done:
            continue
        prompt = case.prompts.build(case.question).tokens
        answer = case.prompts.answer(case.question, case.question.answers[0])[:ANSWER]
        teacher, gold = full_attention(model, prompt, answer), torch.tensor(answer)
        row: dict[str, Any] = {**case.key, "tokens": len(prompt)}
        for name, chosen in ways.items():
            for true in (False, True):
                session = Simulated(
                    model,
                    chosen,
                    scorers,
                    rule,
                    true_positions=true,
                    longest=len(prompt) + len(answer),
                )
                found = after_answer(session, prompt, answer)
                label = f"{name}, true positions" if true else name
                kl = float((teacher.exp() * (teacher - found)).sum(-1).mean())
                more = functional.nll_loss(found, gold) - functional.nll_loss(teacher, gold)
                row[label] = [kl, float(more)]
        rows.append(row)
        with args.rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)
    for label in [key for key in rows[0] if isinstance(rows[0][key], list)]:
        means = [statistics.mean(row[label][i] for row in rows) for i in (0, 1)]
        print(f"{label:40}KL {means[0]:.4f}   loss {means[1]:+.4f}")


if __name__ == "__main__":
    main()
