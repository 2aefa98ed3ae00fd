"""What happens while a request is answered, in no API's words.

Parts of an answer other than text are those of `tools.tool`.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeinfinite.runtime_py.answer.logprobs import TokenLogprobs
from edgeinfinite.runtime_py.session.session import Session


@dataclass(frozen=True)
class Started:
    """The prompt's tokens, and how many of them a saved state has read already."""

    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True)
class Reading:
    """How many tokens of the prompt have been read, those of the saved state included.

    `seconds` have passed since the reading began.
    """

    tokens: int
    compressions: int
    seconds: float


@dataclass(frozen=True)
class Piece:
    """A piece of the answer's text, and the log-probabilities of its tokens if asked for.

    Text may come before its tokens' log-probabilities, where a stop string may follow.
    """

    text: str
    logprobs: tuple[TokenLogprobs, ...] = ()


@dataclass(frozen=True)
class Held:
    """What a state holds of the tokens that it has read.

    Args:
        exact: tokens that every layer with full attention holds: sinks, window and segment, or all.
        older: the others, whose pairs compete for recall slots.
        slots: recall slots in use, of the layer with most.
    """

    exact: int
    older: int
    slots: int

    @classmethod
    def by(cls, session: Session) -> Held:
        """What a session's state holds."""
        read = session.tokens_read
        if not session.compressions:
            return cls(read, 0, 0)
        exact = min(read, session.engine.geometry.sink_length + len(session.residual))
        return cls(exact, read - exact, max(0, session.cached - exact))


@dataclass(frozen=True)
class Finished:
    """Why the answer ended, and what it took.

    Args:
        reason: "stop", "calls" where it ended in whole calls of tools, "length" where it was cut,
            "repetition" where it said one piece over and over.
        new_tokens: of the answer.
        stop: the stop string that ended it; None for any other end.
        tokens: all that the session has read, prompt and answer; empty where nothing was answered.
        held: what the state holds of them.
        thought_tokens: those of the answer that were reasoning.
    """

    reason: str
    new_tokens: int
    stop: str | None = None
    tokens: tuple[int, ...] = ()
    held: Held = Held(0, 0, 0)
    thought_tokens: int = 0
