"""The demo: the house book of a holiday cottage is read, and a guest asks what its first page says.

    python scripts/demo.py ARTIFACT STREAMING

It does what `edgeinfinite read` and a question in `edgeinfinite chat --from` do: each artifact
reads the text once, and answers every question from that state, in the chat template, sampled by
default, with several seeds. `scripts/demo.sh` exports the artifacts and calls this.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from edgeinfinite import Conversation
from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.process_memory import peak_rss_bytes
from edgeinfinite.runtime_py.answer.sampling import Sampler
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer

TEXT = Path(__file__).parents[1] / "examples" / "house_book.txt"
TRAINED_ON = 8192  # tokens, SmolLM2-135M-Instruct
MOST_TOKENS = 32  # of an answer
SEEDS = range(8)


@dataclass(frozen=True)
class Question:
    """A question as a user types it.

    Args:
        ask: the message after the text.
        answer: what a right answer has in it; the text says it once.
    """

    ask: str
    answer: str


QUESTIONS = (
    Question("What is the password of the Wi-Fi?", "marigold77"),
    Question("What is the name of the doctor in the village?", "Okafor"),
)
"""examples/README.md says which others were tried."""


@dataclass(frozen=True)
class Reading:
    """The results of one artifact.

    Args:
        answers: for each question one of each seed of `SEEDS`.
        tokens: of the text.
        read_s: seconds that reading it took.
        answer_s: seconds from a question to the end of its answer, on average.
        state_bytes: of the state, whatever the text's length.
    """

    answers: tuple[tuple[str, ...], ...]
    tokens: int
    read_s: float
    answer_s: float
    state_bytes: int


def text() -> str:
    """The house book."""
    return TEXT.read_text(encoding="utf-8").strip()


def tokens_before_the_end(tokenizer: TextTokenizer, question: Question) -> int:
    """Tokens from the answer's only place in the text to the text's end."""
    whole = text()
    if whole.count(question.answer) != 1:
        raise ValueError(f"{question.answer} stands {whole.count(question.answer)} times in {TEXT}")
    return len(tokenizer.encode_text(whole[whole.index(question.answer) :]))


def read(conversation: Conversation) -> Reading:
    """Reads the text once, then answers every question from the resulting state."""
    with tqdm(desc="reading", unit=" tokens", leave=False, disable=None) as bar:
        start = time.perf_counter()
        conversation.attach(text(), progress=bar.update)
        read_s = time.perf_counter() - start
    tokens = conversation.session.tokens_read
    start = time.perf_counter()
    answers = tuple(
        tuple(answer(conversation, question, seed) for seed in SEEDS) for question in QUESTIONS
    )
    answer_s = (time.perf_counter() - start) / (len(QUESTIONS) * len(SEEDS))
    return Reading(answers, tokens, read_s, answer_s, conversation.session.state_bytes)


def answer(conversation: Conversation, question: Question, seed: int) -> str:
    """Answers from what was read, which stays as it is; in one line, "..." where it goes on."""
    sampler, fork = Sampler(replace(conversation.sampling, seed=seed)), conversation.fork()
    said = "".join(fork.ask(question.ask, sampler=sampler, max_new_tokens=MOST_TOKENS))
    statistics = fork.statistics()
    is_cut = statistics is not None and len(statistics.token_ids) == MOST_TOKENS
    return " ".join(said.split()) + (" ..." if is_cut else "")


def right(question: Question, answers: Sequence[str]) -> int:
    """How many answers have the text's words in them."""
    return sum(question.answer in said for said in answers)


def slots_of(geometry: Geometry) -> int:
    """Of the cache, in an average layer."""
    return geometry.capacity - geometry.most_slots + geometry.average_slots


def _show(reading: Reading) -> None:
    for question, answers in zip(QUESTIONS, reading.answers, strict=True):
        print(f"> {question.ask}   (right: {right(question, answers)} of {len(answers)} seeds)")
        print(f"  {answers[0]}")
    rate = reading.tokens / reading.read_s
    print(
        f"  {reading.state_bytes / 1e6:.1f} MB of state; read in {reading.read_s:.0f} s "
        f"({rate:,.0f} tokens/s), an answer takes {reading.answer_s:.1f} s"
    )


def main(artifact: Path, streaming: Path) -> None:
    """Prints the questions, where the answers are, and what the two artifacts answer."""
    slots = [slots_of(read_manifest(folder).geometry) for folder in (artifact, streaming)]
    if slots[0] != slots[1]:
        sys.exit(
            f"{artifact} has {slots[0]:,} slots and {streaming} {slots[1]:,}, so they can't be "
            "compared; remove both and run this again"
        )
    tokenizer = load_tokenizer(artifact)
    before = [tokens_before_the_end(tokenizer, question) for question in QUESTIONS]
    length = len(tokenizer.encode_text(text()))
    print(f"examples/{TEXT.name} has {length:,} tokens; the model was trained on {TRAINED_ON:,}.")
    print(f"What is asked stands once in it, at least {min(before):,} tokens before its end.")
    print("\nEdgeInfinite, the default", flush=True)
    _show(read(Conversation.open(artifact)))
    if peak := peak_rss_bytes():
        print(f"  {peak / 1e6:.0f} MB is the most that the whole process took")
    print("\nStreamingLLM: as many slots, all for sinks and a window", flush=True)
    _show(read(Conversation.open(streaming)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
