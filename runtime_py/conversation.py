"""A conversation with an artifact: text in, text out, one session behind it.

conversation = Conversation.open("my-artifact")
for piece in conversation.ask(book + question):
print(piece, end="")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.generation import MAX_NEW_TOKENS, Generation
from edgeinfinite.runtime_py.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.session import Session
from edgeinfinite.runtime_py.statistics import GenerationStatistics
from edgeinfinite.runtime_py.tokenizer import TextTokenizer, load_tokenizer


class Conversation:
    """Turns of a user and of the model, in a state of fixed size.

    Args:
        session: holds the text read so far; may be restored from a file.
        tokenizer: the artifact's tokenizer.
        artifact: the artifact's folder, named in the statistics.
    """

    def __init__(self, session: Session, tokenizer: TextTokenizer, artifact: Path | str) -> None:
        self.session = session
        self.tokenizer = tokenizer
        self.artifact = str(artifact)
        self._generation: Generation | None = None
        self._text: list[str] = []

    @classmethod
    def open(cls, artifact: Path | str, *, threads: int | None = None) -> Conversation:
        """Opens an artifact.

        Args:
            artifact: the folder that `edgeinfinite export` wrote.
            threads: the engine's CPU threads; None lets the engine choose.

        Raises:
            EdgeInfiniteError: the artifact is damaged, or its engine isn't installed.
        """
        engine = load_engine(artifact, threads=threads)
        tokenizer = load_tokenizer(Path(artifact), vocabulary=engine.vocabulary)
        return cls(Session(engine), tokenizer, artifact)

    def reset(self) -> None:
        """Forgets everything that was read."""
        self.session = type(self.session)(self.session.engine)

    def turn(self, message: str) -> list[int]:
        """Token ids of the user's next message, in the artifact's chat template.

        Raises:
            EdgeInfiniteError: the artifact has no chat template.
        """
        if self.session.tokens_read or self.session.unread:
            return self.tokenizer.encode_turn(message)
        return self.tokenizer.encode_chat([{"role": "user", "content": message}])

    def ask(
        self,
        message: str,
        *,
        sampler: Sampler | None = None,
        max_new_tokens: int = MAX_NEW_TOKENS,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[str]:
        """Reads a message of any length and answers it.

        Args:
            message: the user's message.
            sampler: chooses the tokens; None is greedy.
            max_new_tokens: the most tokens that the answer may have.
            cancelled: called between chunks of the message and between tokens; True stops.
            progress: called with the number of tokens newly read.

        Yields:
            Pieces of the answer. A piece comes as soon as its characters are complete.

        Raises:
            EdgeInfiniteError: the artifact has no chat template, or a number is out of range.
        """
        return self.answer(
            self.turn(message),
            sampler=sampler,
            max_new_tokens=max_new_tokens,
            cancelled=cancelled,
            progress=progress,
        )

    def answer(
        self,
        tokens: list[int],
        *,
        sampler: Sampler | None = None,
        max_new_tokens: int = MAX_NEW_TOKENS,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[str]:
        """Does what `ask` does, for a prompt that is already tokenized."""
        stream = self.tokenizer.stream()
        self._text = []
        self._generation = generation = Generation(
            self.session,
            tokens,
            sampler=sampler or Sampler(SamplingOptions()),
            stop_ids=self.tokenizer.stop_ids,
            max_new_tokens=max_new_tokens,
            cancelled=cancelled,
            progress=progress,
        )

        def pieces() -> Iterator[str]:
            for token in generation:
                yield stream.push(token)
            yield stream.flush()

        return self._kept(pieces())

    def _kept(self, pieces: Iterator[str]) -> Iterator[str]:
        for piece in pieces:
            self._text.append(piece)
            yield piece

    def statistics(self) -> GenerationStatistics | None:
        """Statistics of the last answer; None before the first one."""
        if self._generation is None:
            return None
        return self._generation.statistics(
            text="".join(self._text),
            engine=self.session.engine.name,
            artifact=self.artifact,
        )
