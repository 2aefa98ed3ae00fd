"""`babilong`, whole: from a subject, bAbI's stories and books to rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from edgeinfinite.evaluation.babilong.cases import babilong_cases, texts_digests
from edgeinfinite.evaluation.babilong.options import BabilongOptions
from edgeinfinite.evaluation.documents import unseen_documents
from edgeinfinite.evaluation.questions.run import Subject, asked
from edgeinfinite.evaluation.results import Results, Shown, unseen


def run_babilong(
    opened: Callable[[], Subject],
    stories: Path,
    books: Sequence[Path],
    options: BabilongOptions,
    rows: Path | None = None,
    shown: Shown = unseen,
) -> Results | None:
    """Hides bAbI's facts in books and asks its questions.

    Args:
        opened: loads what is asked, after the stories have been read.
        stories: folder with bAbI's test files.
        books: texts or folders; those that training has seen are left out.
        options: which tasks and lengths, and how they are read.
        rows, shown: see `asked`.

    Returns:
        See `asked`.

    Raises:
        EdgeInfiniteError: a folder isn't one, or the file holds other rows.
    """
    digests = texts_digests(stories)
    subject = opened()
    unseen_books = unseen_documents(books, subject.trained)
    subject = subject.of_texts(
        seed=options.seed, stories=digests, books=[book.name for book in unseen_books]
    )
    cases = babilong_cases(stories, unseen_books, subject.system.tokenizer, options)
    return asked("babilong", subject, cases, options, rows, shown)
