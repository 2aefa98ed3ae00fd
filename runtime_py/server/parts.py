"""The parts of one answer: text, reasoning and calls, and by which grammar it is written."""

from __future__ import annotations

from collections.abc import Sequence

from edgeinfinite.runtime_py.answer.answer_text import AnswerText
from edgeinfinite.runtime_py.answer.generation import Grammar
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.answer.logprobs import TokenLogprobs
from edgeinfinite.runtime_py.server.ask import Ask, Talk
from edgeinfinite.runtime_py.server.events import Piece
from edgeinfinite.runtime_py.server.jobs import Job
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer
from edgeinfinite.runtime_py.tools.abilities import Abilities, opens_thought
from edgeinfinite.runtime_py.tools.forms import HERMES
from edgeinfinite.runtime_py.tools.grammar import tool_grammar
from edgeinfinite.runtime_py.tools.reader import THINK, THOUGHT, AnswerReader
from edgeinfinite.runtime_py.tools.tool import NO_TOOLS, Part, Said, Thought

_END_OF_PROMPT = 16
"""Tokens at a prompt's end that say whether reasoning has begun."""


class AnswerParts:
    """One answer's parts.

    Args:
        ask: what is answered.
        prompt: its tokens.
        tokenizer: the artifact's.

    Attributes:
        text: the answer's, for `Generation`.
        thought_tokens: tokens that were reasoning.
    """

    def __init__(self, ask: Ask, prompt: Sequence[int], tokenizer: TextTokenizer) -> None:
        talk = ask.prompt if isinstance(ask.prompt, Talk) else None
        abilities = Abilities(tokenizer.template_source)
        self._tokenizer = tokenizer
        self._schema = ask.schema
        self._tools = NO_TOOLS if talk is None else talk.tools
        self._form = abilities.tool_form if self._tools.all else HERMES
        end = b"".join(map(tokenizer.token_bytes, prompt[-_END_OF_PROMPT:])).decode(
            "utf-8", "replace"
        )
        chats = talk is not None and abilities.thinks
        self._thinking = chats and opens_thought(end)
        self._thinks = chats and ask.prompt.begins
        self._reader: AnswerReader | None = None
        if chats or self._tools.all:
            self._reader = AnswerReader(
                self._form,
                self._tools.callable,
                thinks=self._thinks,
                thinking=self._thinking,
            )
        self.text = AnswerText(
            tokenizer.stream(begins=ask.prompt.begins, shown=self._shown()), ask.stop
        )
        self._told = 0
        self.thought_tokens = 0

    @property
    def calls(self) -> bool:
        """Whether the answer ends in calls, all of them whole."""
        reader = self._reader
        return reader is not None and reader.calls > 0 and not reader.is_open

    def grammar(self, guidance: Guidance, job: Job) -> Grammar | None:
        """What the answer must look like; None for anything.

        Raises:
            EdgeInfiniteError: it can't be held to.
            Cancelled: the client left.
        """
        if self._tools.all:
            return tool_grammar(
                guidance,
                self._form,
                self._tools,
                special=self._tokenizer.special_tokens,
                schema=self._schema,
                thinks=self._thinks,
                thinking=self._thinking,
                cancelled=job.cancelled,
            )
        if self._schema is None:
            return None
        return guidance.json_schema(self._schema, cancelled=job.cancelled)

    @property
    def needs_grammar(self) -> bool:
        """Whether the answer means nothing without one: a schema, or a call that must come."""
        return self._schema is not None or self._tools.choice == "required"

    @property
    def wants_grammar(self) -> bool:
        """Whether a grammar would help."""
        return self.needs_grammar or bool(self._tools.all)

    def tell(
        self, job: Job, logprobs: Sequence[TokenLogprobs], whole: int, *, ended: bool = False
    ) -> None:
        """Emits what is new, with the log-probabilities of the tokens up to `whole`.

        Args:
            job: it is emitted for.
            logprobs: of all tokens so far.
            whole: tokens whose text is told.
            ended: no token follows.
        """
        text = self.text.take()
        new = tuple(logprobs[self._told : whole])
        tokens = whole - self._told
        self._told = whole
        if self._reader is None:
            if text or new:
                job.emit(Piece(text, new))
            return
        parts: list[Part] = self._reader.push(text)
        if ended:
            parts += self._reader.finish()
        if any(isinstance(part, Thought) for part in parts):
            self.thought_tokens += tokens
        for part in parts:
            if isinstance(part, Said):
                job.emit(Piece(part.text, new))
                new = ()
            else:
                job.emit(part)
        if new:
            job.emit(Piece("", new))

    def _shown(self) -> set[int]:
        """Special tokens that the reader must see."""
        if self._reader is None:
            return set()
        special = self._tokenizer.special_tokens
        marks = self._form.marks if self._tools.all else ()
        return {special[mark] for mark in (*marks, THINK, THOUGHT) if mark in special}
