"""Finds out what a file of questions holds, by its name's end and its first key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgeinfinite.files import read_text_file
from edgeinfinite.training.babi import read_stories
from edgeinfinite.training.scorer.composed import TextSource
from edgeinfinite.training.scorer.questions.articles import Articles
from edgeinfinite.training.scorer.questions.chats import Chats
from edgeinfinite.training.scorer.questions.labels import read_labels
from edgeinfinite.training.scorer.questions.meetings import read_meetings
from edgeinfinite.training.scorer.questions.stories import Stories
from edgeinfinite.training.squad import read_articles
from edgeinfinite.training.texts import find_documents

SUFFIXES = (".json", ".jsonl", ".csv", ".txt")
"""SQuAD or CLINC150, QMSum, labelled examples, bAbI."""


def question_files(paths: Sequence[Path]) -> list[Path]:
    """The files with questions in files and folders, in the order of their names.

    Raises:
        EdgeInfiniteError: a path doesn't exist, or there is no such file.
    """
    return find_documents(paths, SUFFIXES) if paths else []


def question_sources(
    paths: Sequence[Path], documents: Sequence[Path], chats: bool = False
) -> list[TextSource]:
    """Sources in the order in which texts are taken from them.

    Every second text is of articles, because most questions that people ask are about documents;
    the other kinds take turns, and so do the files of a kind. Without articles, all files of a kind
    come before those of the next.

    Args:
        paths: files or folders.
        documents: the texts in which bAbI's stories are hidden, and of which chats are made.
        chats: whether the model has a chat template; then chats are one more kind.

    Raises:
        EdgeInfiniteError: a file is none of these.
    """
    files = question_files(paths)
    texts = [read_text_file(document) for document in documents] if files else []
    kinds: dict[type, list[TextSource]] = {}
    for path in files:
        source = _read(path, texts)
        kinds.setdefault(type(source), []).append(source)
    if files and chats:
        kinds[Chats] = [Chats(texts)]
    others = [sources for kind, sources in kinds.items() if kind is not Articles]
    articles = kinds.get(Articles, [])
    if not (others and articles):
        return [source for sources in kinds.values() for source in sources]
    found: list[TextSource] = []
    for turn in range(max(map(len, others))):
        for sources in others:
            found += [articles[len(found) // 2 % len(articles)], sources[turn % len(sources)]]
    return found


def _read(path: Path, documents: Sequence[str]) -> TextSource:
    if path.suffix == ".jsonl":
        return read_meetings(path)
    if path.suffix == ".csv":
        return read_labels(path)
    if path.suffix == ".json":
        is_articles = '"data"' in read_text_file(path)[:10_000]
        return Articles(read_articles(path)) if is_articles else read_labels(path)
    return Stories(read_stories(path), documents)
