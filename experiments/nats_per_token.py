"""What an artifact costs: nats per token of a text, read token by token as in decoding.

python experiments/nats_per_token.py --text FILE [--start 20000 --tokens 1024] DIR...

Lower is better. The difference from a float32 artifact of the same model is the cost of
quantization; as long as the text is shorter than the cache, nothing else differs.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np

from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer


def nats_per_token(folder: Path, text: str, count: int) -> float:
    """The mean of -log p(next token) over the first `count` tokens of a text."""
    tokens = load_tokenizer(folder).encode_text(text)[:count]
    session = Session(load_engine(folder))
    losses = []
    for token, following in itertools.pairwise(tokens):
        logits = session.append([token]).astype(np.float64)
        logits -= logits.max()
        losses.append(np.log(np.exp(logits).sum()) - logits[following])
    return float(np.mean(losses))


def main() -> None:
    """Prints one line an artifact."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("artifacts", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--text", required=True, type=Path)
    parser.add_argument("--start", default=0, type=int, help="characters to skip")
    parser.add_argument("--tokens", default=1024, type=int)
    options = parser.parse_args()
    text = options.text.read_text(encoding="utf-8")[options.start :]
    for folder in options.artifacts:
        print(f"{folder.name}: {nats_per_token(folder, text, options.tokens):.4f}", flush=True)


if __name__ == "__main__":
    main()
