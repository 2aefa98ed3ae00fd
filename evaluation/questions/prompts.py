"""From a question to tokens: template, cut in the middle, chat template, answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.training.texts import encode


class Question(Protocol):
    """`longbench.folder.TaskRow`, `babilong.hiding.HiddenQuestion`."""

    @property
    def context(self) -> str:
        """The long text."""
        ...

    @property
    def input(self) -> str:
        """The question about it, may be empty."""
        ...

    @property
    def answers(self) -> tuple[str, ...]:
        """All right answers."""
        ...


@dataclass(frozen=True)
class Prompt:
    """The tokens before the answer.

    Args:
        tokens: the whole prompt.
        question: index of the first token after the context; the number of tokens if the prompt
            ends with the context.
    """

    tokens: list[int]
    question: int


class Prompts:
    """Builds the prompts of one task.

    Args:
        task: its name.
        template: with `{context}` and maybe `{input}`.
        tokenizer: the backbone's own, a fast one.
        chat: whether prompts go through its chat template, if it has one.
    """

    def __init__(
        self, task: str, template: str, tokenizer: PreTrainedTokenizerBase, *, chat: bool = True
    ) -> None:
        self._task, self._template, self._tokenizer = task, template, tokenizer
        self._chats = chat and bool(getattr(tokenizer, "chat_template", None))

    def build(self, row: Question, longest: int | None = None, *, empty: bool = False) -> Prompt:
        """The prompt of a question.

        Args:
            row: of the task.
            longest: tokens that the prompt may have, the chat template's included; a longer one is
                cut in the middle, so that its first and last tokens stay.
            empty: leaves the context out.

        Raises:
            EdgeInfiniteError: the chat template alone is longer.
        """
        context = "" if empty else row.context
        head, _, tail = self._template.partition("{context}")
        tail = tail.replace("{input}", row.input)
        text = head.replace("{input}", row.input) + context + tail
        prompt = self._finish(text, tail)
        if longest is None or len(prompt.tokens) <= longest:
            return prompt
        tokens = self._ids(text)
        room = min(longest, len(tokens) - 1)
        while len(prompt.tokens) > longest:
            half = room // 2
            if half < 1:
                raise EdgeInfiniteError(
                    f"{longest} tokens have no room for a prompt of {self._task}; "
                    "give more to --cut-length"
                )
            prompt = self._finish(self._text(tokens[:half]) + self._text(tokens[-half:]), tail)
            # Tokens that the chat template adds, or that the cut text gains when tokenised again.
            room -= max(1, len(prompt.tokens) - longest)
        return prompt

    def answer(self, row: Question, text: str) -> list[int]:
        """Tokens of a gold answer after the prompt; none for an empty text."""
        if not text:
            return []
        # Without a chat template, ` Date` follows `Type:`, as in the examples of the context.
        end = self._template.partition("{context}")[2].replace("{input}", row.input)[-1:]
        separated = not self._chats and end == ":" and not text[:1].isspace()
        return encode(f" {text}" if separated else text, self._tokenizer)

    def _finish(self, text: str, tail: str) -> Prompt:
        if self._chats:
            message = [{"role": "user", "content": text}]
            text = str(
                self._tokenizer.apply_chat_template(
                    message, tokenize=False, add_generation_prompt=True
                )
            )
        encoded = self._tokenizer(
            text,
            add_special_tokens=not self._chats,
            return_offsets_mapping=True,
            verbose=False,
        )
        tail = tail.rstrip()  # chat templates strip the message
        place = text.rfind(tail) if tail else -1
        offsets = encoded.offset_mapping
        question = len(offsets)
        if place >= 0:
            after = (i for i, (start, end) in enumerate(offsets) if start >= place and end > start)
            question = next(after, len(offsets))
        return Prompt(list(encoded.input_ids), question)

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, verbose=False).input_ids)

    def _text(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))
