"""Recall slots that know the question: the end of the prompt is looked at before the rest is read.

    python experiments/guided_slots.py LONGBENCH ROWS.jsonl [--rows-per-task 2]

Whoever sends a text with a question sends both at once, so a reader may look at the end first.
Here the last Q tokens of the prompt, the guide, run over the cache at compressions without being
added to it; what they attend to ranks the pairs. Finch (arXiv 2408.00167) does so with the prompt
of each chunk; here the state stays as it is, and so does everything else. Sessions are simulated in
bfloat16 as in true_positions.py. What is measured: KL divergence of the gold answer's predictions
from full attention's, and their loss less full attention's. Finished rows are kept.

Letters: L layers, K KV heads, T cached tokens, S sinks, G recall slots, N segment, W window, D head
dimension, Q tokens of the guide.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from true_positions import ANSWER, Simulated, after_answer, attended, full_attention

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.evaluation.longbench.cases import longbench_cases
from edgeinfinite.evaluation.longbench.folder import read_folder
from edgeinfinite.evaluation.longbench.options import LongBenchOptions
from edgeinfinite.evaluation.longbench.tasks import chosen_tasks
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.checkpoint.loading import DEMO_MODEL, load_backbone
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.models.geometry_options import GeometryOptions
from edgeinfinite.models.recall.ranking import with_neighbours
from edgeinfinite.models.recall.rotary import RotaryTable
from edgeinfinite.models.recall.scorer_file import load_scorers, read_rank_rule

_ATTENTION = "edgeinfinite-guide"


@dataclass(frozen=True)
class Way:
    """How slots are filled.

    Args:
        slots: recall slots, as `--recall-slots` takes them.
        guide: Q; 0: as shipped.
        every: compressions from one look to the next; 0: one look, at the first compression.
        all_heads: every head ranks by the guide, not the retrieval heads alone.
        scorer: how much of a rank is the scorer's, in retrieval heads.
        newest: share of a layer's slots that hold what is newest; None: as the rule says.
    """

    slots: int | str = "trained"
    guide: int = 64
    every: int = 1
    all_heads: bool = True
    scorer: float = 0.0
    newest: float | None = None


WAYS = {
    "streaming": Way(0, guide=0),
    "shipped": Way(guide=0),
    "guide, all heads alike": Way(512, newest=0.0),
    "the same, half of the slots newest": Way(512, newest=0.5),
    "the same, one look": Way(512, newest=0.0, every=0),
    "guide, trained slots": Way(),
    "guide, trained slots, retrieval heads": Way(all_heads=False),
    "guide and scorer": Way(scorer=0.5),
}


class Guided(Simulated):
    """A session whose compressions know what the end of the prompt attends to.

    Args:
        way: see there.
        guide: the last tokens of the prompt.
        kwargs: of `Simulated`.
    """

    def __init__(self, *args: Any, way: Way, guide: Sequence[int], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._way, self._guide = way, list(guide)
        self._looks = 0
        self.paid: list[torch.Tensor] = []
        self.queries: list[torch.Tensor] = []
        self._at = 0

    def look(self, layer: int, query: torch.Tensor, key: torch.Tensor) -> None:
        """Keeps `[K, T]` logarithms of the largest weights, and the queries `[K, n, D]`."""
        keys = self.keys[layer]
        grouped = query.reshape(len(keys), -1, query.shape[-1])
        self.queries.append(grouped)
        self.paid.append(self._weights(grouped, keys))

    def _weights(self, grouped: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        scores = (grouped @ keys.transpose(1, 2)).float() * grouped.shape[-1] ** -0.5
        return scores.log_softmax(-1).amax(1)

    def _compress(self) -> None:
        if self._way.guide:
            every = self._way.every
            if self._looks == 0 or (every and self._looks % every == 0):
                self._look()
            else:
                turned = [self._turned(i, q) for i, q in enumerate(self.queries)]
                self.paid = [self._weights(q, k) for q, k in zip(turned, self.keys, strict=True)]
            self._looks += 1
        super()._compress()

    def _turned(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        """The queries of the last look as if they were asked now."""
        table, later = self._tables[layer], self._next - self._at
        if later >= 0:
            table = RotaryTable(table.cos, -table.sin)
        return table.shift_back(query, torch.full(query.shape[:2], abs(later)))

    @torch.inference_mode()
    def _look(self) -> None:
        self.paid, self.queries, self._at = [], [], self._next
        places = torch.arange(self._next, self._next + len(self._guide))
        with attention_implementation(self._model, _ATTENTION):
            self._model(
                input_ids=torch.tensor([self._guide]),
                position_ids=places[None],
                use_cache=False,
                logits_to_keep=1,
                edgeinfinite_session=self,
            )

    def _ranks(self, layer: int, scores: torch.Tensor | None, age: torch.Tensor) -> torch.Tensor:
        way = self._way
        shipped = super()._ranks(layer, scores, age)
        if not way.guide:
            return shipped
        sinks = self._geometry.sink_length
        paid = self.paid[layer][:, sinks : sinks + len(age)]
        paid = with_neighbours(paid[None], self._rule)[0]
        paid = (paid - paid.mean(1, keepdim=True)) / paid.std(1, keepdim=True)
        by_rank = self._scorers[layer].retrieval.bool()
        mixed = paid
        if way.scorer:
            mixed = way.scorer * shipped + (1 - way.scorer) * (paid + age)
        return torch.where(by_rank, mixed, paid if way.all_heads else shipped)

    def _newest(self, slots: int) -> int:
        newest = self._way.newest
        return super()._newest(slots) if newest is None else int(newest * slots)

    def _move(self, layer: int, moved: int) -> None:
        if not self._way.guide or not self._way.all_heads:
            super()._move(layer, moved)
            return
        window = self._geometry.window_length
        old = self.places[layer]
        total = old.shape[1]
        places = torch.arange(total)
        new = torch.where(places < total - window, places, old - moved)
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
    session: Guided = kwargs["edgeinfinite_session"]
    layer: int = module.layer_idx  # type: ignore[assignment]
    session.look(layer, query[0], key[0])
    keys = torch.cat((session.keys[layer], key[0]), 1)
    values = torch.cat((session.values[layer], value[0]), 1)
    return attended(query, keys, values, scaling), None


AttentionInterface.register(_ATTENTION, _attention)
AttentionMaskInterface.register(_ATTENTION, lambda *args, **kwargs: None)


def main() -> None:
    """Measures what the file of rows lacks, then prints the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--rows-per-task", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=7900)
    parser.add_argument("--min-tokens", type=int, default=1900)
    parser.add_argument("--tasks", default="en,code")
    args = parser.parse_args()
    backbone = load_backbone(DEMO_MODEL)
    path = Path(str(resolve(backbone, ModelOptions()).config.scorer))

    def geometry(way: Way) -> Geometry:
        window = 960 if way.slots == 0 else None
        asked = GeometryOptions(recall_slots=way.slots, window_length=window)
        return resolve(backbone, ModelOptions(asked)).config.geometry

    facts = architecture_of(backbone.model)
    scorers = load_scorers(path, len(facts.layers), facts.kv_heads, facts.head_dim)
    rule, model = read_rank_rule(path), backbone.model.bfloat16()
    options = LongBenchOptions(
        rows_per_task=args.rows_per_task, max_tokens=args.max_tokens, min_tokens=args.min_tokens
    )
    data = read_folder(args.data, chosen_tasks(args.tasks.split(",")))
    rows = [json.loads(line) for line in args.rows.open()] if args.rows.exists() else []
    done = {(row["task"], row["row"]) for row in rows}
    for case in longbench_cases(data, backbone.tokenizer, options):
        if (case.key["task"], case.key["row"]) in done:
            continue
        prompt = case.prompts.build(case.question).tokens
        answer = case.prompts.answer(case.question, case.question.answers[0])[:ANSWER]
        teacher, gold = full_attention(model, prompt, answer), torch.tensor(answer)
        row: dict[str, Any] = {**case.key, "tokens": len(prompt)}
        for name, way in WAYS.items():
            session = Guided(
                model,
                geometry(way),
                scorers,
                rule,
                true_positions=False,
                longest=len(prompt) + len(answer),
                way=way,
                guide=prompt[-way.guide :] if way.guide else (),
            )
            found = after_answer(session, prompt, answer)
            kl = float((teacher.exp() * (teacher - found)).sum(-1).mean())
            more = functional.nll_loss(found, gold) - functional.nll_loss(teacher, gold)
            row[name] = [kl, float(more)]
        rows.append(row)
        with args.rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)
    for label in [key for key in rows[0] if isinstance(rows[0][key], list)]:
        found = [row[label] for row in rows if label in row]
        means = [statistics.mean(pair[i] for pair in found) for i in (0, 1)]
        error = statistics.stdev(pair[1] for pair in found) / math.sqrt(len(found))
        print(f"{label:32}KL {means[0]:.4f}   loss {means[1]:+.4f} ± {error:.3f}")


if __name__ == "__main__":
    main()
