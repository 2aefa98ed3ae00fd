"""Answers of a given form: a JSON schema, a regular expression or a Lark grammar.

llguidance says which tokens may come next; needs `pip install 'edgeinfinite[guidance]'`. V is the
vocabulary size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.tokenizer import TextTokenizer

_JSON = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As `json.dumps` writes it. Small models fill free white space without end. A schema may say
otherwise under `x-guidance`."""

_LONGEST_REASON = 200


class Guidance:
    """Makes grammars for the answers of one model. Takes about 0.3 s, so keep it.

    Args:
        tokenizer: the artifact's.
        vocabulary: V of the model.

    Raises:
        EdgeInfiniteError: llguidance isn't installed or can't use the tokenizer, or the artifact
            has no token that ends an answer.
    """

    def __init__(self, tokenizer: TextTokenizer, vocabulary: int) -> None:
        self._library = _llguidance()
        if not tokenizer.stop_ids:
            raise EdgeInfiniteError(
                "the artifact has no token that ends an answer, which a grammar needs; "
                "answer without one"
            )
        self._vocabulary = vocabulary
        try:
            self._tokenizer = self._library.LLTokenizer(
                tokenizer.to_json(), eos_token=sorted(tokenizer.stop_ids)
            )
        except Exception as error:  # the library raises what it likes
            raise EdgeInfiniteError(
                f"llguidance can't use the artifact's tokenizer ({_short(str(error))}); "
                "answer without a grammar"
            ) from error

    def json_schema(self, schema: str | Mapping[str, Any]) -> TokenGrammar:
        """A grammar for one answer that is JSON of a schema, written as `json.dumps` would.

        Raises:
            EdgeInfiniteError: the schema isn't one, is no JSON object, or uses a keyword that
                llguidance lacks.
        """
        try:
            source = json.loads(schema) if isinstance(schema, str) else schema
        except (ValueError, RecursionError) as error:
            raise EdgeInfiniteError(
                f"the JSON schema isn't JSON: {_short(str(error))}; correct it"
            ) from error
        if not isinstance(source, Mapping):
            raise EdgeInfiniteError(
                f"the JSON schema is {source!r:.80}; give an object such as "
                '{"type": "object", ...}'
            )
        try:
            grammar = self._library.LLMatcher.grammar_from_json_schema(dict(source), defaults=_JSON)
        except ValueError as error:  # numbers of more than 64 bits
            raise EdgeInfiniteError(
                f"the JSON schema can't be used: {_short(str(error))}; correct it"
            ) from error
        return self._compile("JSON schema", grammar)

    def regex(self, pattern: str) -> TokenGrammar:
        """A grammar for one answer that matches a regular expression from start to end.

        Raises:
            EdgeInfiniteError: the pattern isn't one of Rust's crate `regex`.
        """
        grammar = self._library.LLMatcher.grammar_from_regex(pattern)
        return self._compile(f"regular expression {pattern!r:.80}", grammar)

    def lark(self, grammar: str) -> TokenGrammar:
        """A grammar for one answer, in llguidance's variant of Lark's syntax.

        Raises:
            EdgeInfiniteError: there is an error in it.
        """
        return self._compile("Lark grammar", self._library.LLMatcher.grammar_from_lark(grammar))

    def _compile(self, what: str, grammar: str) -> TokenGrammar:
        matcher = self._library.LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            reason = _short(matcher.get_error())
            raise EdgeInfiniteError(f"the {what} can't be used: {reason}; correct it")
        return TokenGrammar(matcher, self._vocabulary)


class TokenGrammar:
    """See `generation.Grammar`. Made by `Guidance`, for one answer."""

    def __init__(self, matcher: Any, vocabulary: int) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary

    @property
    def is_finished(self) -> bool:
        return bool(self._matcher.is_stopped())

    def allowed(self) -> np.ndarray:
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        self._check()
        return np.unpackbits(bits, count=self._vocabulary, bitorder="little").view(bool)

    def accept(self, token: int) -> None:
        self._matcher.consume_token(token)
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            reason = _short(self._matcher.get_error())
            raise EdgeInfiniteError(f"the grammar can't be followed: {reason}; simplify it")


def _short(message: str) -> str:
    """The line of llguidance's message that says what is wrong."""
    lines = message.splitlines() or ["no reason given"]
    told = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return " ".join((told or lines)[0].split())[:_LONGEST_REASON]


def _llguidance() -> Any:
    try:
        import llguidance
    except ModuleNotFoundError as error:
        raise EdgeInfiniteError(
            "answers of a given form need the package llguidance; install it with: "
            "pip install 'edgeinfinite[guidance]'"
        ) from error
    return llguidance
