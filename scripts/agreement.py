"""How often two artifacts prefer the same next token, on the same texts.

    python scripts/agreement.py FLOAT_ARTIFACT OTHER_ARTIFACT --data TEXTS --tokens 256

Teacher-forced: both read the text itself, so one difference doesn't change what follows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from tqdm import tqdm

from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer


def preferred(engine: Engine, tokens: Sequence[int]) -> Iterator[int]:
    """The token of the largest logit after each token of a text."""
    session = Session(engine)
    for token in tokens:
        yield int(np.argmax(session.append([token])))


def agreement(first: Engine, second: Engine, texts: Sequence[Sequence[int]]) -> list[float]:
    """The share of places in each text where both prefer the same token."""
    shares = []
    for text in tqdm(texts, unit="texts"):
        pairs = zip(preferred(first, text), preferred(second, text), strict=True)
        shares.append(fmean(a == b for a, b in pairs))
    return shares


def main() -> None:
    """Prints the share of each text and their mean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("artifacts", type=Path, nargs=2)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--tokens", type=int, default=256)
    arguments = parser.parse_args()
    tokenizer = load_tokenizer(arguments.artifacts[0])
    texts = [
        tokenizer.encode_text(path.read_text(encoding="utf-8")[: 16 * arguments.tokens])
        for path in arguments.data
    ]
    texts = [text[: arguments.tokens] for text in texts]
    shares = agreement(*map(load_engine, arguments.artifacts), texts)
    for path, share in zip(arguments.data, shares, strict=True):
        print(f"{share:.3f}  {path.name}")
    print(f"{fmean(shares):.3f}  mean of {len(shares)} texts")


if __name__ == "__main__":
    main()
