"""How to train a retention scorer. No torch: the command line reads it before any is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import check_writable
from edgeinfinite.training.books import BOOKS


@dataclass(frozen=True)
class PassOptions:
    """One kind of forward pass to watch.

    Args:
        tokens: T, its length.
        gap: a query counts only if it comes at least this many tokens later.
        facts: number of facts planted in the text and asked for at its end, except in plain passes.
        plain: one pass in `plain` has no facts; 0 for none.
        long: one pass in `long` has twice the tokens, as far as the backbone's positions go, and
            half as many facts again; 0 for none.
        kept_pairs: pairs kept of a pass, drawn at random; the pairs of the facts are kept too.
        asked: one pass in `asked` reads a text with questions that people asked, if there are any;
            the rest read documents as if there were none.
    """

    tokens: int = 3072
    gap: int = 512
    facts: int = 8
    plain: int = 3
    long: int = 7
    kept_pairs: int = 1024
    asked: int = 3

    def of_pass(self, index: int, positions: int) -> tuple[int, int]:
        """Tokens and facts of a pass; no pass is longer than what the backbone was trained on."""
        facts = 0 if self.plain and index % self.plain == 0 else self.facts
        if self.long and index % self.long == self.long - 1:
            return min(2 * self.tokens, positions), facts * 3 // 2
        return self.tokens, facts

    def source_of_pass(self, index: int, sources: int) -> int | None:
        """Which of so many sources of questions a pass reads; None: a document with facts."""
        if not sources or not self.asked or index % self.asked != self.asked - 1:
            return None
        return index // self.asked % sources

    def document_of_pass(self, index: int, sources: int) -> int:
        """How many passes before this one read documents."""
        return index - (index + 1) // self.asked if sources and self.asked else index


@dataclass(frozen=True)
class ScorerOptions:
    """How to train.

    Args:
        model: what `load_backbone` takes.
        output: the scorer's file (safetensors, float16).
        data: text files or folders; by default the excerpts of books that come with the package.
        questions: files with questions that people asked (see `questions.sources`), or folders.
        hold_out: share of the documents that training leaves alone; the score is measured there.
        passes: forward passes of the backbone.
        held_out_passes: further passes over held-out documents, for the score.
        repeated_passes: further passes in which the model repeats what it has read, for the second
            network; 0 for a scorer without one.
        base: a scorer for the same checkpoint that stays as it is and gets a second network; None
            trains both.
        watched: length, facts and gap of a pass.
        retrieval_share: this share of all KV heads, those that pay most attention to planted facts,
            fill their slots by score; the other heads keep what is newest. The same share of the
            layers gets more slots. In layers with sliding windows no head can be chosen, so there
            may be fewer.
        emphasis: a pair's weight in the fit is its later attention to this power. The slots are for
            few pairs; with equal weights the fit would tell the many others apart.
        steps: of the fit.
        batch: pairs of a step.
        learning_rate: at its start; it falls to zero along a cosine.
        seed: of everything random.
        pre_tokenizer: see `load_backbone`.
    """

    model: str
    output: Path
    data: Sequence[Path] = (BOOKS,)
    questions: Sequence[Path] = ()
    hold_out: float = 0.25
    passes: int = 84
    held_out_passes: int = 4
    repeated_passes: int = 64
    base: Path | None = None
    watched: PassOptions = field(default_factory=PassOptions)
    retrieval_share: float = 1 / 3
    emphasis: float = 0.3
    steps: int = 800
    batch: int = 1024
    learning_rate: float = 3e-3
    seed: int = 0
    pre_tokenizer: str | None = None

    def __post_init__(self) -> None:
        for name in ("passes", "held_out_passes", "steps", "batch"):
            if getattr(self, name) < 1:
                raise EdgeInfiniteError(f"{name.replace('_', ' ')} must be at least 1")
        if self.repeated_passes < 0:
            raise EdgeInfiniteError("repeated passes must be at least 0")
        if self.base is not None and not self.repeated_passes:
            raise EdgeInfiniteError("--base gets what --repeated-passes find; give at least 1")
        if not 0 < self.hold_out < 1:
            raise EdgeInfiniteError(f"hold out is {self.hold_out}; give a share between 0 and 1")
        if not 0 < self.retrieval_share <= 1:
            raise EdgeInfiniteError(
                f"retrieval share is {self.retrieval_share}; give a share above 0, at most 1"
            )
        if not 0 <= self.emphasis <= 1:
            raise EdgeInfiniteError(f"emphasis is {self.emphasis}; give a number from 0 to 1")
        if self.watched.long < 0:
            raise EdgeInfiniteError(f"long is {self.watched.long}; give a number from 0 on")
        if self.watched.facts < 0:
            raise EdgeInfiniteError(f"facts is {self.watched.facts}; give a number from 0 on")
        if self.watched.tokens < 2 * self.watched.gap:
            raise EdgeInfiniteError(
                f"{self.watched.tokens} tokens are too few for a gap of {self.watched.gap}; "
                "give at least twice as many"
            )
        check_writable(self.output)
