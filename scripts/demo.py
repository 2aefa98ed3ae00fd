"""The demo: two questions about the first page of a book, asked after three of its stories.

    python scripts/demo.py ARTIFACT STREAMING

Both artifacts read the text once and answer the questions from the same state. `scripts/demo.sh`
exports the artifacts and calls this.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.process_memory import peak_rss_bytes
from edgeinfinite.runtime_py.answer.generation import Generation
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer

TEXT = Path(__file__).parents[1] / "examples" / "draculas_guest.txt"
TRAINED_ON = 8192  # tokens, SmolLM2-135M-Instruct
MOST_TOKENS = 24  # of an answer, which ends with its line


@dataclass(frozen=True)
class Question:
    """A question in the form that small models answer: with the first words of the answer.

    Args:
        ask: stands after the text.
        opening: the first words of the answer.
        answer: how the answer goes on, as the book has it.
        last_said: the book's last mention of it.
    """

    ask: str
    opening: str
    answer: str
    last_said: str

    @property
    def prompt(self) -> str:
        """What is appended to the text."""
        return f"\n\nQuestion: {self.ask}\nAnswer: {self.opening}"


QUESTIONS = (
    Question(
        "What was the name of the maître d'hôtel?",
        "The name of the maître d'hôtel was Herr",
        " Delbrück",
        "Delbrück,' I enquired, 'how and why was",
    ),
    Question(
        "Which story begins on page 67?",
        '"The Secret of the',
        ' Growing Gold"',
        "Growing Gold                  67",
    ),
)


@dataclass(frozen=True)
class Reading:
    """The results of one artifact.

    Args:
        answers: one for each question: its first line.
        tokens: of the text.
        read_s: seconds that reading it took.
        answer_s: seconds from the first question to the end of the last answer.
        slots: of the cache, in an average layer.
        state_bytes: of the state, whatever the text's length.
    """

    answers: tuple[str, ...]
    tokens: int
    read_s: float
    answer_s: float
    slots: int
    state_bytes: int


def text() -> str:
    """Three stories, and the first pages of the book that holds them."""
    return TEXT.read_text(encoding="utf-8").rstrip()


def tokens_before_the_end(tokenizer: TextTokenizer, question: Question) -> int:
    """Tokens from the book's last word about the answer to the end of the prompt."""
    rest = text()[text().rindex(question.last_said) :]
    return len(tokenizer.encode_text(rest + question.prompt))


def read(artifact: Path) -> Reading:
    """Reads the text once, then answers every question from the resulting state."""
    engine, tokenizer = load_engine(artifact), load_tokenizer(artifact)
    tokens = tokenizer.encode_text(text())
    session = Session(engine)
    start = time.perf_counter()
    with tqdm(total=len(tokens), desc="reading", unit=" tokens", leave=False, disable=None) as bar:
        session.append(tokens, progress=bar.update)
    read_s = time.perf_counter() - start
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "text.session"
        save_session(session, saved)
        start = time.perf_counter()
        for question in QUESTIONS:
            answers.append(_answer(load_session(engine, saved)[0], tokenizer, question))
        answer_s = time.perf_counter() - start
    slots = slots_of(engine.geometry)
    return Reading(tuple(answers), len(tokens), read_s, answer_s, slots, session.state_bytes)


def slots_of(geometry: Geometry) -> int:
    """Of the cache, in an average layer."""
    return geometry.capacity - geometry.most_slots + geometry.average_slots


def _answer(session: Session, tokenizer: TextTokenizer, question: Question) -> str:
    said, stream = "", tokenizer.stream()
    generation = Generation(
        session,
        tokenizer.encode_text(question.prompt),
        sampler=Sampler(SamplingOptions()),
        stop_ids=tokenizer.stop_ids,
        max_new_tokens=MOST_TOKENS,
        cancelled=lambda: "\n" in said,
    )
    for token in generation:
        said += stream.push(token)
    return (said + stream.flush()).partition("\n")[0]


def _show(reading: Reading) -> None:
    for question, answer in zip(QUESTIONS, reading.answers, strict=True):
        verdict = "right" if answer.startswith(question.answer) else "wrong"
        print(f"  {verdict:<18}...{answer}")
    slots, rate = reading.slots, reading.tokens / reading.read_s
    rows = (
        ("state", f"{reading.state_bytes / 1e6:.1f} MB, {slots:,} slots in an average layer"),
        ("text read in", f"{reading.read_s:.1f} s, {rate:,.0f} tokens/s"),
        ("both answered in", f"{reading.answer_s:.1f} s"),
    )
    for name, value in rows:
        print(f"  {name:<18}{value}")


def main(artifact: Path, streaming: Path) -> None:
    """Prints the questions, where the answers are, and what the two artifacts answer."""
    slots = [slots_of(read_manifest(folder).geometry) for folder in (artifact, streaming)]
    if slots[0] != slots[1]:
        sys.exit(
            f"{artifact} has {slots[0]:,} slots and {streaming} {slots[1]:,}, so they can't be "
            "compared; remove both and run this again"
        )
    tokenizer = load_tokenizer(artifact)
    length = len(tokenizer.encode_text(text()))
    print(f"examples/{TEXT.name} has {length:,} tokens. Asked after them, the answer begun:")
    for question in QUESTIONS:
        before = tokens_before_the_end(tokenizer, question)
        print(f"  {question.ask} {question.opening} ...")
        print(f"      the book says it last {before:,} tokens before the end")
    print(f"The model was trained on {TRAINED_ON:,} tokens: full attention can't read so many.")

    print("\nEdgeInfinite, the default", flush=True)
    _show(read(artifact))
    if peak := peak_rss_bytes():
        print(f"  {'peak memory':<18}{peak / 1e6:.0f} MB, of the whole process")
    print("\nStreamingLLM: as many slots, all for sinks and a window", flush=True)
    _show(read(streaming))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
