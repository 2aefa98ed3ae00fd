"""The one request behind all APIs: a prompt, and how to answer it.

Each API has an adapter that makes an `Ask` of its own request; nothing here knows which one it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.repetition import Detection
from edgeinfinite.runtime_py.text.chat_template import Message
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer
from edgeinfinite.runtime_py.tools.abilities import Abilities
from edgeinfinite.runtime_py.tools.plain import plain_messages
from edgeinfinite.runtime_py.tools.tool import NO_TOOLS, Tools


class Prompt(Protocol):
    """What is answered."""

    @property
    def begins(self) -> bool:
        """Whether the answer is a text of its own, rather than the rest of one."""

    def encode(self, tokenizer: TextTokenizer) -> list[int]:
        """The prompt's tokens.

        Raises:
            EdgeInfiniteError: the tokenizer or its chat template refuses it.
        """


@dataclass(frozen=True)
class Text:
    """A text that the answer continues as it stands."""

    text: str
    begins: bool = False

    def encode(self, tokenizer: TextTokenizer) -> list[int]:
        return tokenizer.encode_text(self.text)


@dataclass(frozen=True)
class Talk:
    """A conversation.

    Args:
        messages: all of them.
        continues: the last one stays open, and the answer is the rest of it.
        opens: whether the template writes how an answer begins.
        tools: that the model is told of, and may call.
        effort: of reasoning; None leaves it to the template.
        usual_effort: what the request's API means where none is named; a template that knows no
            effort refuses any other.
        switches: the chat template's own.
        read: the tokens of an earlier request and its answer, which `news` follow; empty for none.
        news: the last ones of `messages`, where `read` stands for all before.
    """

    messages: tuple[Message, ...]
    continues: bool = False
    opens: bool = True
    tools: Tools = NO_TOOLS
    effort: str | None = None
    usual_effort: str = "default"
    switches: Mapping[str, Any] = field(default_factory=dict)
    read: Sequence[int] = ()
    news: tuple[Message, ...] = ()

    @property
    def begins(self) -> bool:
        return not self.continues

    def encode(self, tokenizer: TextTokenizer) -> list[int]:
        """The prompt's tokens.

        Raises:
            EdgeInfiniteError: the tokenizer or its chat template refuses it, or lacks a switch.
        """
        abilities = Abilities(tokenizer.template_source)
        more = abilities.options(self.effort, self.switches, usual=self.usual_effort)
        messages, news, tools = self.messages, self.news, self.tools.all
        if tools:
            _ = abilities.tool_form  # or it is refused
        if abilities.writes_tools:
            more |= {"tools": [tool.declared() for tool in tools]} if tools else {}
        else:
            messages = tuple(plain_messages(messages, tools))
            news = tuple(plain_messages(news, ()))
        try:
            return self._encoded(tokenizer, messages, news, more)
        except RecursionError as error:
            raise EdgeInfiniteError("the request is nested too deep; flatten it") from error

    def _encoded(
        self,
        tokenizer: TextTokenizer,
        messages: Sequence[Message],
        news: Sequence[Message],
        more: Mapping[str, Any],
    ) -> list[int]:
        if self.read and not self.continues:
            try:
                return [*self.read, *tokenizer.encode_after(news, more=more)]
            except EdgeInfiniteError:  # the template writes earlier turns anew: so all is
                pass
        return tokenizer.encode_chat(
            messages, continues=self.continues, opens=self.opens, more=more
        )


def sampling_of(default: SamplingOptions, **given: Any) -> SamplingOptions:
    """How to choose tokens; what is None is as in `default`.

    Whoever asks for temperature 0 wants the likeliest tokens, so no default changes them; but an
    answer that repeats itself ends, as long as the request doesn't say otherwise.
    """
    if given.get("temperature") == 0:
        default = SamplingOptions(repetition_detection=default.repetition_detection)
    said = {name: one for name, one in given.items() if one is not None}
    if isinstance(detection := said.get("repetition_detection"), Detection):
        said["repetition_detection"] = detection.meant()
    return replace(default, **said)


@dataclass(frozen=True)
class Ask:
    """What to answer, and how.

    Args:
        prompt: see there.
        sampling: how to choose the answer's tokens.
        max_new_tokens: the most tokens that the answer may have; 0 only reads the prompt.
        stop: strings that end the answer.
        logprobs: how many likely tokens to list for each token; None lists nothing.
        schema: a JSON schema that the answer must follow, as JSON; None for any text.
    """

    prompt: Prompt
    sampling: SamplingOptions
    max_new_tokens: int
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    schema: str | None = None
