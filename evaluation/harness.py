"""A model of lm-evaluation-harness over an artifact, or over a checkpoint in PyTorch.

Requests with a common prefix share one prefill: they are sorted, and the state after the prefix is
saved and restored.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.models.utils import handle_stop_sequences, normalize_gen_kwargs
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.reader import TextReader

_MOST_NEW_TOKENS = 256
_WORTH_SAVING = 32
"""Shortest prefix worth sharing: copying a state costs as much as reading a few tokens."""
_MOST_SAVED = 4
"""Most states saved for one context; each is as large as the model's own."""


class HarnessModel(TemplateLM):
    """`loglikelihood`, `loglikelihood_rolling` and `generate_until` (greedy), of any length.

    Args:
        open_reader: opens a reader for a new text of at most the given number of tokens.
        tokenizer: the model's own, of transformers.
        stop_ids: tokens that end an answer.
        name: the model's, for the harness's caches.
        right_answer: gives a document's right answer, whose loss is measured beside the generated
            one; see `gold_rows`.
        shorten: gives what to read of a document's prompt; None reads all of it.
        compresses: the method drops pairs when it has read a prompt, which `loglikelihood_rolling`
            doesn't have.
    """

    def __init__(
        self,
        open_reader: Callable[[int], TextReader],
        tokenizer: PreTrainedTokenizerBase,
        stop_ids: frozenset[int],
        name: str,
        right_answer: Callable[[Mapping[str, Any]], str | None] | None = None,
        *,
        shorten: Callable[[Mapping[str, Any], str], str] | None = None,
        compresses: bool = False,
    ) -> None:
        super().__init__()
        self._compresses = compresses
        self._right_answer, self._shorten = right_answer, shorten
        self._gold: dict[tuple[str, int], list[float]] = {}
        self._open, self._name, self._stop_ids = open_reader, name, stop_ids
        self.tokenizer: Any = tokenizer

    @property
    def eot_token_id(self) -> int:
        """The tokenizer's end-of-text token."""
        return int(self.tokenizer.eos_token_id)

    @property
    def prefix_token_id(self) -> int:
        """Replaces an empty context, as in the harness's own `hf` model."""
        first = self.tokenizer.bos_token_id
        return self.eot_token_id if first is None else int(first)

    @property
    def tokenizer_name(self) -> str:
        """Identifies the tokenizer in the harness's request caches."""
        return self._name.replace("/", "__")

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The tokenizer's own; None if it isn't requested."""
        if not chat_template:
            return None
        if not self.tokenizer.chat_template:
            raise EdgeInfiniteError(f"{self._name} has no chat template; leave the option out")
        return str(self.tokenizer.chat_template)

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """The conversation as text for the model."""
        return str(
            self.tokenizer.apply_chat_template(
                chat_history,
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=not add_generation_prompt,
            )
        )

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **kwargs: Any
    ) -> list[int]:
        """Token ids; by default with the special tokens that the tokenizer adds."""
        del kwargs
        if add_special_tokens is None:
            first = self.tokenizer.bos_token
            add_special_tokens = not (first and string.startswith(first))
        return list(
            self.tokenizer(string, add_special_tokens=add_special_tokens, verbose=False).input_ids
        )

    def _loglikelihood_tokens(
        self,
        requests: list[tuple[tuple[str, str], list[int], list[int]]],
        disable_tqdm: bool = False,
        **kwargs: Any,
    ) -> list[tuple[float, bool]]:
        del kwargs
        self._check_reads_all()
        results: list[tuple[float, bool]] = [(0.0, True)] * len(requests)
        contexts = [context for _, context, _ in requests]
        longest = max((len(more) for _, _, more in requests), default=0)
        for index, reader in self._after(contexts, longest, disable_tqdm):
            asked, _, continuation = requests[index]
            if continuation:
                prediction = reader.read(continuation)
                results[index] = -float(prediction.nats.sum()), bool(prediction.best.all())
            self.cache_hook.add_partial("loglikelihood", asked, results[index])
        return results

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        """Reads each text in one piece, however long, without cutting it into windows.

        Raises:
            EdgeInfiniteError: the method compresses prompts, or leaves a part of them out.
        """
        self._check_reads_all()
        if self._compresses:
            raise EdgeInfiniteError(
                f"{self._name} drops pairs at the end of a prompt, and a task with "
                "loglikelihood_rolling has no prompts; choose full, streaming or edgeinfinite"
            )
        results = []
        for request in tqdm(requests, disable=disable_tqdm, desc="loglikelihood_rolling"):
            tokens = self.tok_encode(request.args[0])
            reader = self._open(len(tokens) + 1)
            reader.skip([self.prefix_token_id])
            total = -float(reader.read(tokens).nats.sum()) if tokens else 0.0
            results.append(total)
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, total)
        return results

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Decodes greedily up to one of the strings in `until`, or an end token.

        Raises:
            EdgeInfiniteError: a task wants sampling.
        """
        results = [""] * len(requests)
        settings = [self._generation(request.args[1]) for request in requests]
        contexts = [self._prompt(request) or [self.prefix_token_id] for request in requests]
        longest = max((most for _, most in settings), default=0)
        for index, reader in self._after(contexts, longest, disable_tqdm):
            until, most = settings[index]
            self._measure_gold(requests[index], reader)
            results[index] = self._answer(reader, until, most)
            self.cache_hook.add_partial("generate_until", requests[index].args, results[index])
        return results

    def _check_reads_all(self) -> None:
        if self._shorten is not None:
            raise EdgeInfiniteError(
                f"{self._name} asks RULER's questions alone; choose another method for other tasks"
            )

    def _prompt(self, request: Instance) -> list[int]:
        text = str(request.args[0])
        return self.tok_encode(text if self._shorten is None else self._shorten(request.doc, text))

    def _measure_gold(self, request: Instance, reader: TextReader) -> None:
        """Measures the loss of the right answer, then restores the state."""
        answer = self._right_answer(request.doc) if self._right_answer else None
        if answer is None:
            return
        restore = reader.save()
        nats = reader.read(self.tok_encode(answer, add_special_tokens=False)).nats
        restore()
        key = str(request.task_name), int(request.doc["max_length"])
        self._gold.setdefault(key, []).append(float(nats.mean()))

    def gold_rows(self) -> list[dict[str, Any]]:
        """Nats per token of the right answers: mean and standard error by task and length."""
        rows = []
        for (task, length), nats in self._gold.items():
            error = float(np.std(nats, ddof=1) / len(nats) ** 0.5) if len(nats) > 1 else None
            row = {"task": task, "metric": f"{length}_nats", "filter": "none"}
            rows.append(row | {"value": float(np.mean(nats)), "stderr": error})
        return rows

    def _generation(self, given: dict[str, Any]) -> tuple[list[str], int]:
        kwargs = normalize_gen_kwargs(dict(given), _MOST_NEW_TOKENS)
        if kwargs.get("do_sample") and kwargs.get("temperature", 1.0) > 0:
            raise EdgeInfiniteError("a task asks for sampling, but answers are greedy")
        return handle_stop_sequences(kwargs.get("until"), eos=None), int(kwargs["max_gen_toks"])

    def _answer(self, reader: TextReader, until: Sequence[str], most: int) -> str:
        answer: list[int] = []
        text = ""
        while len(answer) < most:
            token = int(reader.logits.argmax())
            if token in self._stop_ids:
                break
            answer.append(token)
            text = str(self.tokenizer.decode(answer, skip_special_tokens=True))
            if any(stop and stop in text for stop in until) or len(answer) == most:
                break
            reader.skip([token])
        for stop in until:
            if stop:
                text = text.split(stop)[0]
        return text

    def _after(
        self, contexts: Sequence[Sequence[int]], room: int, disable_tqdm: bool
    ) -> Iterator[tuple[int, TextReader]]:
        """Yields each context's index with a reader that has read it, in an order that shares
        prefills.

        Args:
            contexts: token ids, at least one each.
            room: tokens that may follow each context.
            disable_tqdm: hides the progress bar.
        """
        order = sorted(range(len(contexts)), key=lambda index: list(contexts[index]))
        ordered = [list(contexts[index]) for index in order]
        common = [_common(one, other) for one, other in itertools.pairwise(ordered)] + [0]
        longest = max(map(len, contexts), default=0)
        saved: list[tuple[int, Callable[[], None]]] = []  # tokens read, and how to restore them
        reader: TextReader | None = None
        with tqdm(
            total=sum(map(len, contexts)), unit=" tokens", unit_scale=True, disable=disable_tqdm
        ) as bar:
            for place, context in enumerate(ordered):
                if saved and reader is not None:
                    at, restore = saved[-1]
                    restore()
                else:
                    at, reader = 0, self._open(longest + room)
                for stop in _worth_saving(common[place:], at):
                    reader.skip(context[at:stop])
                    at = stop
                    saved.append((at, reader.save()))
                if context[at:]:
                    reader.skip(context[at:])
                reader.end_prompt()  # what was saved before is not compressed
                bar.update(len(context))
                yield order[place], reader
                saved = [one for one in saved if one[0] <= common[place]]


def _worth_saving(common: Sequence[int], at: int) -> list[int]:
    """Where to save the state while reading a context: at the prefixes that later ones share.

    Args:
        common: tokens shared by this context and the next, the next and the one after, and so on.
        at: tokens already read or saved.
    """
    stops: set[int] = set()
    shared = common[0]
    for count in common:
        shared = min(shared, count)
        if shared < max(_WORTH_SAVING, at + 1) or len(stops) == _MOST_SAVED:
            break
        stops.add(shared)
    return sorted(stops)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
