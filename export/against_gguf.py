"""Compares an artifact with llama.cpp, which reads the GGUF file that it was made from.

What is judged is how the file was read. Token ids are the artifact's own. Logits are those of the
checkpoint as loaded from the file, in float32: the artifact's differ by its own quantization, and
`verify` compares them with that checkpoint.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgeinfinite.artifact.manifest import Manifest, pre_tokenizer_of
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.default_text import default_text
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.installation import install_package
from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer

_PLACES = (0, 64, 511)
"""Tokens after which logits are compared: wrong angles of RoPE show from the second on."""

_FLOATS = {"F32", "F16", "BF16"}
_LIMIT, _LIMIT_QUANTIZED = 0.01, 0.15
"""Relative to the logits' spread. llama.cpp multiplies quantized weights by activations that it
rounds to 8 bits; a setting that was lost is 0.3 and more."""

TEXTS = (
    "The capital of France is Paris.",
    " two  blanks   three    four",
    "List:\n\n1. one\n\n2. two\n   indented",
    "In 1897 there were 23.4 million; 1,000,000 + 2024 = ?",
    "a  5 b",
    "\ttabs\t\tand\r\nreturns\r\n\r\nend \n ",
    "def f(x):\n    return x[0] == 'y'  # comment\n",
    "I'm, you're, WE'LL, it's; don't DON'T",
    "ÀÉÎÕÜ ñandú Straße naïve cafe\u0301",
    "中文分词：人工智能的发展，2024年。",
    "日本語のテキスト、カタカナとひらがな。",
    "한국어 문장입니다.",
    "مرحبا بالعالم ١٢٣",
    "שלום עולם",
    "Привет, мир! 100 рублей",
    "हिन्दी वाक्य १२३",
    "👋🏽 emoji 👩‍👩‍👧 🇩🇪 😀😀",
    "nbsp\u00a0thin\u2009zero\u200bwidth\u3000wide",
    'https://example.org/a?b=c&d=%20#e {"k": [1, 2.5e-3, null]}',
    "!!! ... --- ### *** ((( ))) <<>>",
    "x" * 40 + " " * 17 + "y",
    "control \x01 \x7f and \ufffd",
)


def check_against_gguf(folder: Path, manifest: Manifest, file: Path) -> list[Check]:
    """Compares token ids and logits with llama.cpp's.

    Args:
        folder, manifest: the artifact.
        file: the `.gguf` file that it was made from.

    Returns:
        `weights` (the artifact is of this file), `tokens:llama.cpp` (texts with other ids) and
        `logits:llama.cpp` (largest relative error).

    Raises:
        EdgeInfiniteError: llama-cpp-python isn't installed, or it or we can't read the file.
    """
    try:
        import llama_cpp
    except ImportError as error:
        raise EdgeInfiniteError(
            "comparing with a .gguf file needs llama.cpp; install it with: "
            f"{install_package('llama-cpp-python')}"
        ) from error
    backbone = load_backbone(str(file), pre_tokenizer=pre_tokenizer_of(manifest))
    try:
        peer = llama_cpp.Llama(
            str(file),
            n_ctx=_PLACES[-1] + 1,
            type_k=llama_cpp.GGML_TYPE_F32,
            type_v=llama_cpp.GGML_TYPE_F32,
            yarn_ext_factor=-1.0,  # as the file says; the library's own defaults aren't
            yarn_attn_factor=-1.0,
            yarn_beta_fast=-1.0,
            yarn_beta_slow=-1.0,
            verbose=False,
        )
    except ValueError as error:
        raise EdgeInfiniteError(f"llama.cpp can't read {file.name}: {error}") from error
    same = backbone.weights_sha256 == manifest.backbone.weights_sha256
    tokenizer = load_tokenizer(folder, vocabulary=manifest.backbone.vocabulary)
    others = sum(_differ(tokenizer, peer, text) for text in TEXTS)
    kinds = {tensor.tensor_type.name for tensor in backbone.tensors}
    limit = _LIMIT if kinds <= _FLOATS else _LIMIT_QUANTIZED
    error_ = _logits_error(backbone, peer, tokenizer)
    return [
        Check("weights", same, float(same)),
        Check("tokens:llama.cpp", not others, float(others), 0.0),
        Check("logits:llama.cpp", error_ <= limit, error_, limit),
    ]


def _differ(tokenizer: TextTokenizer, peer: Any, text: str) -> bool:
    raw = text.encode()
    alone = tokenizer.encode_text(text) == peer.tokenize(raw, add_bos=True, special=True)
    more = tokenizer.encode_more(text) == peer.tokenize(raw, add_bos=False, special=True)
    return not (alone and more)


def _logits_error(backbone: Backbone, peer: Any, tokenizer: TextTokenizer) -> float:
    """The largest relative error of the logits at `_PLACES`."""
    ids = tokenizer.encode_text(default_text()[: 20 * _PLACES[-1]])[: _PLACES[-1] + 1]
    places = [place for place in _PLACES if place < len(ids)]
    with torch.no_grad():
        found = backbone.model(torch.tensor([ids]), logits_to_keep=torch.tensor(places)).logits[0]
    errors, start = [], 0
    for place, logits in zip(places, found.numpy(), strict=True):
        wanted = _peer_logits(peer, ids[start : place + 1])
        start = place + 1
        spread = np.linalg.norm(wanted - wanted.mean())
        errors.append(float(np.linalg.norm(logits - wanted) / spread))
    return max(errors)


def _peer_logits(peer: Any, ids: list[int]) -> np.ndarray:
    """llama.cpp's logits `[V]` after some more tokens."""
    import llama_cpp

    peer.eval(ids)
    last = llama_cpp.llama_get_logits_ith(peer.ctx, -1)
    return np.ctypeslib.as_array(last, (peer.n_vocab(),)).copy()
