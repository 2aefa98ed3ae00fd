"""Every file of the corpus is read, or refused in one line, as the name of its folder says."""

from __future__ import annotations

from collections import Counter

import pytest
from fuzz.readers import CORPUS, READERS, refusal_of_corpus

FILES = sorted(path.relative_to(CORPUS) for path in CORPUS.glob("*/*/*"))


@pytest.mark.parametrize("reader", READERS)
def test_every_file_is_read_or_refused_as_before(reader: str) -> None:
    otherwise = {}
    for path in FILES:
        if path.parts[0] == reader:
            line = refusal_of_corpus(path)
            if (line is None) != (path.parts[1] == "read"):
                otherwise[str(path)] = line
    assert not otherwise


def test_every_reader_has_whole_and_damaged_files_and_all_of_them_are_small() -> None:
    kinds = Counter(path.parts[:2] for path in FILES)
    for reader in READERS:
        assert kinds[reader, "read"] >= 1 and kinds[reader, "refused"] >= 4, reader
    assert set(kinds) == {(reader, what) for reader in READERS for what in ("read", "refused")}
    sizes = [(CORPUS / path).stat().st_size for path in FILES]
    assert max(sizes) < 12_000 and sum(sizes) < 1_000_000
