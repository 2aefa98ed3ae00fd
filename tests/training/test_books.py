"""The texts that come with the package."""

from __future__ import annotations

import json

from edgeinfinite.models.shipped import PACKAGE
from edgeinfinite.models.trained_file import read_metadata
from edgeinfinite.training.books import BOOKS
from edgeinfinite.training.texts import find_documents, split_documents


def test_the_shipped_scorer_has_not_read_the_books_that_are_held_out():
    trained, held_out = split_documents(find_documents([BOOKS]), 0.25)
    assert (len(trained), len(held_out)) == (12, 4)
    read = read_metadata(PACKAGE / "scorers/smollm2-135m-instruct.safetensors")
    assert {path.name for path in trained} <= set(json.loads(read["trained_on"]))
    assert not {path.name for path in held_out} & set(json.loads(read["trained_on"]))


def test_every_book_is_long_enough_for_what_is_read_of_it():
    trained, held_out = split_documents(find_documents([BOOKS]), 0.25)
    # Four characters a token: twice 3,072 tokens in training, prompts of 30,000 in a test.
    assert all(path.stat().st_size > 4 * 2 * 3_072 for path in trained)
    assert all(path.stat().st_size > 4 * 30_000 for path in held_out)
