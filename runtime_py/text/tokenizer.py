"""Text to tokens and back, from the files of an artifact, without transformers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tokenizers import Tokenizer

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.generation_config import stop_ids
from edgeinfinite.runtime_py.engines.malloc_options import give_back_freed
from edgeinfinite.runtime_py.text.answer_ends import answer_ends
from edgeinfinite.runtime_py.text.chat_template import ChatTemplate, Message
from edgeinfinite.runtime_py.text.control_tokens import ControlTokens
from edgeinfinite.runtime_py.text.text_stream import TextStream
from edgeinfinite.runtime_py.text.token_bytes import TokenBytes
from edgeinfinite.runtime_py.text.tokenizer_check import as_json, check_parts, guarded

Rendered = TypeVar("Rendered")

_PIECE = 1 << 20
"""Characters checked in one call, which holds the interpreter."""


class TextTokenizer:
    """The artifact's tokenizer and chat template; made by `load_tokenizer`.

    Args:
        tokenizer: the library's.
        chat_template: of a base model None.
        stop_ids: tokens that the checkpoint's settings name.

    Attributes:
        stop_ids: tokens that end an answer, those of the template among them: an artifact of an
            earlier version doesn't list these.
        answer_ends: those of the template, see there.
    """

    def __init__(
        self, tokenizer: Tokenizer, chat_template: ChatTemplate | None, stop_ids: frozenset[int]
    ) -> None:
        self._tokenizer = tokenizer
        self._chat_template = chat_template
        self.answer_ends: frozenset[int] = frozenset()
        if chat_template is not None:
            self.answer_ends = answer_ends(chat_template, tokenizer)
        self.stop_ids = stop_ids | self.answer_ends
        self._control = ControlTokens(
            tokenizer, self.stop_ids, "" if chat_template is None else chat_template.source
        )
        self._bytes = TokenBytes(tokenizer)
        # Each look at a text of 16 MB holds the interpreter for milliseconds. If several threads
        # did so at once, the others, such as the server's loop, would wait for all of them.
        self._one_at_a_time = threading.Lock()

    @property
    def has_chat_template(self) -> bool:
        """False for the artifact of a base model, which only continues text."""
        return self._chat_template is not None

    def encode_text(self, text: str) -> list[int]:
        """The text as it stands, with the special tokens that the tokenizer itself adds.

        Special tokens spelled out in the text become special tokens: no template keeps them apart.
        A text that spells its beginning (`<s>`) itself gets no second one.

        Raises:
            EdgeInfiniteError: the text holds half a surrogate pair.
        """
        ids = self._encode(text, add_special_tokens=True)
        if len(ids) > 1 and ids[0] == ids[1] and self._bytes.is_special(ids[0]):
            added = len(ids) - len(self._encode(text, add_special_tokens=False))
            return ids[1:] if added else ids
        return ids

    def encode_more(self, text: str) -> list[int]:
        """Text that continues what was read as it stands, without a special token of its own.

        Otherwise as `encode_text`.

        Raises:
            EdgeInfiniteError: the text holds half a surrogate pair.
        """
        return self._encode(text, add_special_tokens=False)

    def encode_message(self, text: str, *, system: str | None = None) -> list[int]:
        """`encode_chat` of a conversation that the user begins with `text`.

        Args:
            text: the user's message.
            system: what it stands behind; None for the template's own system prompt, or none.
        """
        told = [] if system is None else [{"role": "system", "content": system}]
        return self.encode_chat([*told, {"role": "user", "content": text}])

    def encode_chat(
        self,
        messages: Sequence[Message],
        *,
        continues: bool = False,
        opens: bool = True,
        more: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """A whole conversation, ending where the assistant's next answer starts.

        Control tokens spelled out in a message stay text; only the template writes real ones.

        Args:
            messages: at least one.
            continues: the last message stays open, and the answer is the rest of it.
            opens: whether the template writes the beginning of an answer; `continues` never does.
            more: what else the template is given: `tools`, and switches of its own.

        Raises:
            EdgeInfiniteError: there is no chat template, it refuses the conversation, or it changes
                the message that is to be continued.
        """
        template = self._template()
        render = template.render_open if continues else partial(template.render, opens=opens)
        encode, rendering = self._rendered(render, messages, more)
        return encode(rendering)

    def encode_turn(self, text: str) -> list[int]:
        """`encode_after` where the user goes on with `text`."""
        return self.encode_after([{"role": "user", "content": text}])

    def encode_after(
        self, messages: Sequence[Message], *, more: Mapping[str, Any] | None = None
    ) -> list[int]:
        """The tokens to append after an answer when the conversation goes on with `messages`.

        They begin with the template's own end of the answer, so the token that stopped the answer
        must not have been appended (`generation.Generation` doesn't); an answer that was cut
        short by Ctrl-C or by its length is closed in the same way.

        Args:
            messages: at least one; the next answer starts behind them.
            more: as in `encode_chat`.

        Raises:
            EdgeInfiniteError: there is no chat template, or it rewrites earlier turns.
        """
        encode, (head, tail) = self._rendered(self._template().render_after, messages, more)
        # The whole is encoded and its start cut off, because some tokenizers treat the first
        # characters of a text differently. Where a token reaches over the cut, the tail stands
        # alone, as the sampled answer's last token stands alone too.
        whole = encode(head + tail)
        start = encode(head)
        if whole[: len(start)] == start:
            return whole[len(start) :]
        return encode(tail)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, without special tokens; broken UTF-8 reads as U+FFFD."""
        return guarded(
            "the tokenizer can't write the answer",
            lambda: self._tokenizer.decode(list(ids), skip_special_tokens=True),
        )

    def name_of(self, token: int) -> str:
        """What the vocabulary calls a token; its number where it isn't in it."""
        return str(self._tokenizer.id_to_token(token) or token)

    def to_json(self) -> str:
        """The tokenizer as its file `tokenizer.json` has it, for other libraries."""
        return as_json(self._tokenizer)

    def token_bytes(self, token: int) -> bytes:
        """The bytes of a token within a text; parts of a character and special tokens have theirs.

        Args:
            token: an id; one that the tokenizer lacks has no bytes.
        """
        return self._bytes.of(token)

    @property
    def chat_template(self) -> ChatTemplate | None:
        """The artifact's; None of a base model."""
        return self._chat_template

    @property
    def template_source(self) -> str:
        """The chat template's; "" without one."""
        return "" if self._chat_template is None else self._chat_template.source

    @property
    def special_tokens(self) -> dict[str, int]:
        """Ids by text of the tokens that an answer's text leaves out."""
        added = self._tokenizer.get_added_tokens_decoder()
        return {token.content: number for number, token in added.items() if token.special}

    def stream(self, *, begins: bool = True, shown: Collection[int] = ()) -> TextStream:
        """A new decoder for one answer, token by token.

        Args:
            begins: whether the answer is a text of its own, as in a chat; False where it goes on
                in the middle of a text, whose first space must stay.
            shown: special tokens whose texts aren't left out.
        """
        return TextStream(self._bytes, begins=begins, shown=shown)

    def _rendered(
        self,
        render: Callable[..., Rendered],
        messages: Sequence[Message],
        more: Mapping[str, Any] | None,
    ) -> tuple[Callable[[str], list[int]], Rendered]:
        """What the template makes of messages, and what encodes it."""
        with self._one_at_a_time:
            if not self._spell_control_tokens([*messages, more]):
                return partial(self._encode, add_special_tokens=False), render(messages, more=more)
            marked = [self._control.mark(message) for message in messages]
            return self._control.encode, render(marked, more=self._control.mark_all(more))

    def _spell_control_tokens(self, given: Any) -> bool:
        texts = list(_texts_in(given))
        for text in texts:
            _check_unicode(text)
        return self._control.are_spelled_in(texts)

    def _template(self) -> ChatTemplate:
        if self._chat_template is None:
            raise EdgeInfiniteError(
                "the artifact has no chat template (a base model?); "
                "use `edgeinfinite generate --raw`, which continues the text"
            )
        return self._chat_template

    def _encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        _check_unicode(text)
        # Without offsets, which nobody asks for: a long text takes less memory and time.
        (encoded,) = guarded(
            "the tokenizer can't read the text",
            lambda: self._tokenizer.encode_batch_fast(
                [text], add_special_tokens=add_special_tokens
            ),
        )
        ids: list[int] = encoded.ids  # a list of its own, made when it is asked for
        return ids


def _texts_in(value: Any) -> Iterator[str]:
    """The texts of what JSON can say."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts_in(key)
            yield from _texts_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts_in(one)


def _check_unicode(text: str) -> None:
    if text.isascii():
        return
    for start in range(0, len(text), _PIECE):
        try:
            text[start : start + _PIECE].encode("utf-8")
        except UnicodeEncodeError as error:
            at = start + error.start
            raise EdgeInfiniteError(
                f"the text isn't valid Unicode: {text[at]!r} at character {at}; save it as UTF-8"
            ) from error


def load_tokenizer(folder: Path, *, vocabulary: int | None = None) -> TextTokenizer:
    """Reads tokenizer.json, tokenizer_config.json, generation_config.json, chat_template.jinja.

    The chat template may be missing: a base model has none.

    Args:
        folder: the artifact.
        vocabulary: V of the model, which the tokens that end an answer must be in; None where it
            isn't known.

    Raises:
        EdgeInfiniteError: the folder or a file is missing, truncated or not what it should be.
    """
    if not folder.is_dir():
        raise EdgeInfiniteError(
            f"{folder} is not a folder; give the folder of an exported artifact"
        )
    path = folder / "tokenizer.json"
    _require(path)
    tokenizer = guarded(f"{path} is damaged", lambda: Tokenizer.from_file(str(path)))
    check_parts(path, tokenizer)
    give_back_freed()  # 35 MB of JSON for a vocabulary of 262,144
    tokenizer.no_truncation()
    tokenizer.no_padding()

    config = _read_object(folder / "tokenizer_config.json")
    special_tokens = _special_tokens(folder / "tokenizer_config.json", config)
    settings = folder / "generation_config.json"
    ends = stop_ids(settings, _read_object(settings), vocabulary)
    end = tokenizer.token_to_id(special_tokens.get("eos_token", ""))
    if end is not None:
        ends |= {end}
    source = _template_source(folder / "chat_template.jinja", config)
    template = None if source is None else ChatTemplate(source, special_tokens)
    return TextTokenizer(tokenizer, template, ends)


def _special_tokens(path: Path, config: dict[str, Any]) -> dict[str, str]:
    """`{"bos_token": "<s>", ...}`; a token is a string, or an object that holds it as `content`."""
    tokens = {}
    for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"):
        token = config.get(f"{name}_token")
        if isinstance(token, dict):
            token = token.get("content")
        if not isinstance(token, str):
            continue
        try:
            token.encode()
        except UnicodeEncodeError as error:  # half a surrogate pair, which JSON can spell
            raise _damaged(path, f"{name}_token isn't valid Unicode") from error
        tokens[f"{name}_token"] = token
    return tokens


def _template_source(path: Path, config: dict[str, Any]) -> str | None:
    if path.exists():
        return _read_text(path)
    source = config.get("chat_template")  # where older tokenizers kept it
    return source if isinstance(source, str) else None


def _read_object(path: Path) -> dict[str, Any]:
    _require(path)
    try:
        value = json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from error
    if not isinstance(value, dict):
        raise _damaged(path, f"a JSON object was expected, not {type(value).__name__}")
    return value


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _damaged(path, error) from error


def _require(path: Path) -> None:
    if not path.is_file():
        raise EdgeInfiniteError(f"{path} is missing: the artifact is incomplete; export it again")


def _damaged(path: Path, cause: object) -> EdgeInfiniteError:
    return EdgeInfiniteError(f"{path} is damaged ({cause}); export the artifact again")
