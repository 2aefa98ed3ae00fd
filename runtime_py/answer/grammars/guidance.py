"""Answers of a given form: a JSON schema, a regular expression or a Lark grammar.

llguidance says which tokens may come next; needs the extra `guidance`. V is the
vocabulary size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.installation import install_extra
from edgeinfinite.runtime_py.answer.grammars.json_schemas import understood
from edgeinfinite.runtime_py.answer.grammars.process import (
    TOO_MUCH,
    GrammarHost,
    LocalGrammar,
    LocalGrammars,
    Refused,
    RemoteGrammar,
    is_available,
)
from edgeinfinite.runtime_py.answer.grammars.schema_faults import Fault, fault_of, short
from edgeinfinite.runtime_py.session.session import Cancelled
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer

Result = TypeVar("Result")

_JSON = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As `json.dumps` writes it. Small models fill free white space without end. A schema may say
otherwise under `x-guidance`."""

_MOST_FAULTS = 50

_NO_TEXT = "NoExtensionBias"
"""What the library says of a grammar that begins and never ends, as `{"$ref": "#"}`."""


class Guidance:
    """Makes grammars for the answers of one model. Takes about half a second, so keep it.

    Args:
        tokenizer: the artifact's.
        vocabulary: V of the model.

    Raises:
        EdgeInfiniteError: llguidance isn't installed or can't use the tokenizer, or the artifact
            has no token that ends an answer.
    """

    def __init__(self, tokenizer: TextTokenizer, vocabulary: int) -> None:
        _require_llguidance()
        if not tokenizer.stop_ids:
            raise EdgeInfiniteError(
                "the artifact has no token that ends an answer, which a grammar needs; "
                "answer without one"
            )
        self._vocabulary = vocabulary
        made = GrammarHost if is_available() else LocalGrammars
        try:
            self._grammars: GrammarHost | LocalGrammars = made(
                tokenizer.to_json(), tokenizer.stop_ids
            )
        except Refused as error:
            raise EdgeInfiniteError(
                f"llguidance can't use the artifact's tokenizer ({short(str(error))}); "
                "answer without a grammar"
            ) from error

    def json_schema(
        self, schema: str | Mapping[str, Any], *, cancelled: Callable[[], bool] | None = None
    ) -> TokenGrammar:
        """A grammar for one answer that is JSON of a schema, written as `json.dumps` would.

        Args:
            schema: JSON, or what it says.
            cancelled: asked while the grammar works, now and later; True ends it.

        Raises:
            EdgeInfiniteError: the schema isn't one, is no JSON object, uses a keyword that
                llguidance lacks, or takes too much time or memory; the message names the keyword by
                its place.
            Cancelled: `cancelled` said so.
        """
        try:
            source = json.loads(schema) if isinstance(schema, str) else schema
        except (ValueError, RecursionError) as error:
            raise EdgeInfiniteError(
                f"the JSON schema isn't JSON: {short(str(error))}; correct it"
            ) from error
        if not isinstance(source, Mapping):
            raise EdgeInfiniteError(
                f"the JSON schema is {source!r:.80}; give an object such as "
                '{"type": "object", ...}'
            )
        source = understood(dict(source))
        try:
            return self._opened("json_schema", source, cancelled)
        except Refused as error:
            found = self._fault(source, str(error), cancelled)
            raise _unusable("JSON schema", found.said) from error

    def nearest(
        self, schema: Mapping[str, Any], *, cancelled: Callable[[], bool] | None = None
    ) -> dict[str, Any] | None:
        """The schema without the keywords that llguidance can't hold to; None if that isn't enough.

        Args:
            schema: what JSON says.
            cancelled: see `json_schema`.

        Raises:
            Cancelled: `cancelled` said so.
        """
        source: dict[str, Any] = json.loads(json.dumps(understood(dict(schema))))
        for _ in range(_MOST_FAULTS):
            try:
                self._opened("json_schema", source, cancelled)
            except Refused as error:
                found = self._fault(source, str(error), cancelled)
                if found.keyword is None:
                    return None
                del found.part[found.keyword]
            else:
                return source
        return None

    def regex(self, pattern: str, *, cancelled: Callable[[], bool] | None = None) -> TokenGrammar:
        """A grammar for one answer that matches a regular expression from start to end.

        Raises:
            EdgeInfiniteError: the pattern isn't one of Rust's crate `regex`, or takes too much.
        """
        try:
            return self._opened("regex", pattern, cancelled)
        except Refused as error:
            what = f"regular expression {pattern!r:.80}"
            raise _unusable(what, short(str(error))) from error

    def lark(self, grammar: str, *, cancelled: Callable[[], bool] | None = None) -> TokenGrammar:
        """A grammar for one answer, in llguidance's variant of Lark's syntax.

        Raises:
            EdgeInfiniteError: there is an error in it, or it takes too much.
        """
        try:
            return self._opened("lark", grammar, cancelled)
        except Refused as error:
            raise _unusable("Lark grammar", short(str(error))) from error

    def _opened(
        self, kind: str, source: Any, cancelled: Callable[[], bool] | None = None
    ) -> TokenGrammar:
        grammar = {"kind": kind, "source": source, "defaults": _JSON}
        return TokenGrammar(self._grammars.open(grammar, cancelled), self._vocabulary)

    def _fault(
        self, source: dict[str, Any], reason: str, cancelled: Callable[[], bool] | None
    ) -> Fault:
        return fault_of(source, reason, lambda part: self._refusal(part, cancelled))

    def _refusal(self, source: dict[str, Any], cancelled: Callable[[], bool] | None) -> str | None:
        """What is wrong with a part of a schema; None for nothing."""
        if cancelled is not None and cancelled():
            raise Cancelled
        try:
            self._opened("json_schema", source, cancelled)
        except Refused as error:
            return str(error)
        return None


class TokenGrammar:
    """See `generation.Grammar`. Made by `Guidance`, for one answer."""

    def __init__(self, matcher: RemoteGrammar | LocalGrammar, vocabulary: int) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary

    @property
    def is_finished(self) -> bool:
        return self._matcher.is_stopped

    def allowed(self) -> np.ndarray:
        bits = np.frombuffer(self._followed(self._matcher.compute_bitmask), np.uint8)
        return np.unpackbits(bits, count=self._vocabulary, bitorder="little").view(bool)

    def accept(self, token: int) -> None:
        self._followed(lambda: self._matcher.consume_token(token))

    def _followed(self, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except Refused as error:
            if _NO_TEXT in str(error):
                raise EdgeInfiniteError(
                    "the grammar can't be followed: no text has this form; correct it"
                ) from error
            raise EdgeInfiniteError(
                f"the grammar can't be followed: {short(str(error))}; simplify it"
            ) from error


def _unusable(what: str, reason: str) -> EdgeInfiniteError:
    remedy = "correct it"
    if TOO_MUCH in reason:
        remedy = "simplify it"
    elif "supported" in reason:
        remedy = "leave it out or write it otherwise"
    return EdgeInfiniteError(f"the {what} can't be used: {reason}; {remedy}")


def _require_llguidance() -> None:
    try:
        import llguidance  # noqa: F401
    except ModuleNotFoundError as error:
        raise EdgeInfiniteError(
            "answers of a given form need the package llguidance; install it with: "
            f"{install_extra('guidance')}"
        ) from error
