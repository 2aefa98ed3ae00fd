"""The byte pair encoding of a GGUF file: by its merges, or by the scores of its tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from edgeinfinite.models.checkpoint.gguf.pre_tokenizers import PreTokenizer
from edgeinfinite.models.checkpoint.gguf.tokenizer_fields import TokenizerFields

MARK = "▁"
"""Stands for a blank in tokens of SentencePiece."""

_MOST_EQUAL = 1000
"""Tokens of one score; files whose scores mean nothing have all of them in one."""


@dataclass(frozen=True)
class Parts:
    """What a tokenizer of the tokenizers library is put together from."""

    model: models.BPE
    normalizer: normalizers.Normalizer | None
    pre_tokenizer: pre_tokenizers.PreTokenizer | None
    decoder: decoders.Decoder


def split_by(patterns: Iterable[str]) -> list[pre_tokenizers.PreTokenizer]:
    """One pre-tokenizer for each pattern; each cuts what the ones before it left."""
    return [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]


def parts_of_merges(
    fields: TokenizerFields, tokens: dict[str, int], kind: PreTokenizer, found: Collection[int]
) -> Parts:
    """A tokenizer with merges: of bytes, or of characters with `▁` for blanks.

    Args:
        fields: of the file.
        tokens: text to id.
        kind: how words are cut.
        found: tokens that are found in a text before it is cut.

    Raises:
        EdgeInfiniteError: the merges are missing, or make what isn't a token.
    """
    lines = fields.texts("merges")
    if lines is None:
        raise fields.refused("merges", "is missing; convert the model to GGUF again")
    merges = list(_known_merges(fields, tokens, lines))
    split = split_by(kind.patterns)
    if kind.spaces_as_marks:
        if not _has_bytes(tokens):
            raise fields.refused("tokens", "lacks tokens for single bytes")
        model = models.BPE(vocab=tokens, merges=merges, byte_fallback=True)
        for text in (text for text, token in tokens.items() if token not in found):
            # llama.cpp takes a run of newlines for its token without asking the merges.
            if set(text) == {"\n"} and len(model.tokenize(text)) > 1:
                raise fields.refused("merges", f"doesn't make the token of {len(text)} newlines")
        return Parts(
            model,
            normalizers.Replace(" ", MARK),
            pre_tokenizers.Sequence(split),
            _decoder(strips=False),
        )
    split.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    missing = [letter for letter in _letters_of_bytes() if letter not in tokens]
    if missing:
        # Such bytes are no tokens; merges don't reach over them.
        split.append(pre_tokenizers.Split(Regex(_one_of(missing)), "removed"))
    return Parts(
        models.BPE(vocab=tokens, merges=merges, ignore_merges=kind.ignore_merges),
        None,
        pre_tokenizers.Sequence(split),
        decoders.ByteLevel(),
    )


def parts_of_scores(
    fields: TokenizerFields, tokens: dict[str, int], *, prefix: bool, unknown: str | None
) -> Parts:
    """SentencePiece's byte pair encoding: the pair whose token has the best score is joined first.

    Args:
        fields: of the file.
        tokens: text to id.
        prefix: a blank goes before a text, and after every token that stands for itself.
        unknown: the token for characters that are none, where the file has no tokens of bytes.

    Raises:
        EdgeInfiniteError: the scores are missing, or don't say which of two pairs comes first.
    """
    scores = fields.numbers("scores")
    if scores is None or len(scores) < len(tokens):
        raise fields.refused("scores", "lacks scores of tokens; convert the model to GGUF again")
    has_bytes = _has_bytes(tokens)
    if not has_bytes and unknown is None:
        raise fields.refused(
            "tokens", "lacks tokens for single bytes and one for unknown characters"
        )
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", MARK)]
    if prefix:
        steps.insert(0, normalizers.Prepend(MARK))
    model = models.BPE(
        vocab=tokens,
        merges=_merges_by_score(fields, tokens, scores),
        unk_token=unknown,
        fuse_unk=True,
        byte_fallback=has_bytes,
    )
    return Parts(model, normalizers.Sequence(steps), None, _decoder(strips=prefix))


def _known_merges(
    fields: TokenizerFields, tokens: dict[str, int], lines: list[str]
) -> Iterator[tuple[str, str]]:
    seen = set()
    for line in lines:
        at = line.find(" ", 1)
        pair = line[:at], line[at + 1 :]
        if at < 0 or not pair[1]:
            raise fields.refused("merges", f"holds {line!r}, which isn't two tokens")
        if pair in seen:
            continue
        seen.add(pair)
        parts = [part in tokens for part in pair]
        if all(parts) and pair[0] + pair[1] in tokens:
            yield pair
        elif all(is_token or len(part) == 1 for is_token, part in zip(parts, pair, strict=True)):
            raise fields.refused("merges", f"joins {line!r}, and not all of it is in the tokens")


def _merges_by_score(
    fields: TokenizerFields, tokens: dict[str, int], scores: list[float]
) -> list[tuple[str, str]]:
    """Every way to make a token of two, the best score first."""
    ways: dict[str, list[tuple[str, str]]] = {}
    for text in tokens:
        if " " in text:  # blanks become MARK first, so only a special token is found so
            continue
        pairs = [(text[:cut], text[cut:]) for cut in range(len(text) - 1, 0, -1)]
        found = [pair for pair in pairs if pair[0] in tokens and pair[1] in tokens]
        if found:
            ways[text] = found
        for pair in pairs[:1] + pairs[-1:]:  # in no others is a part one character
            if pair not in found and all(part in tokens or len(part) == 1 for part in pair):
                raise fields.refused(
                    "tokens", f"holds {text!r}, but not all of its characters; such a token "
                    "can't be found in a text as llama.cpp finds it",
                )  # fmt: skip
    equal: dict[float, list[str]] = defaultdict(list)
    for text in ways:
        equal[scores[tokens[text]]].append(text)
    ordered = []
    for score in sorted(equal, reverse=True):
        for text in _leftmost_first(fields, equal[score], ways):
            ordered += ways[text]
    return ordered


def _leftmost_first(
    fields: TokenizerFields, texts: list[str], ways: dict[str, list[tuple[str, str]]]
) -> list[str]:
    """An order of tokens of one score in which the left one of two that overlap comes first.

    Where all have one score, the leftmost pair of a text is joined first. Merges have an order
    among all, so it is looked for which of two tokens can stand to the left of the other. Runs of
    one character come longest first: the run at the left then grows before another one begins.
    """
    if len(texts) == 1:
        return texts
    if len(texts) > _MOST_EQUAL:
        raise fields.refused("scores", f"gives {len(texts)} tokens the same score")
    begins = defaultdict(set)
    for text in texts:
        for left, _ in ways[text]:
            begins[left].add(text)
    before: dict[str, set[str]] = {text: set() for text in texts}
    for text in texts:
        for _, right in ways[text]:
            for other in begins[right]:
                if other != text and not (_is_run(text) and _is_run(other)):
                    before[other].add(text)
    ordered: list[str] = []
    waiting = sorted(texts, key=lambda text: -len(text))
    while waiting:
        ready = next((text for text in waiting if not before[text]), None)
        if ready is None:
            raise fields.refused(
                "scores", f"gives {waiting[0]!r} and {waiting[1]!r} the same score; which comes "
                "first depends on the text",
            )  # fmt: skip
        waiting.remove(ready)
        ordered.append(ready)
        for others in before.values():
            others.discard(ready)
    return ordered


def _is_run(text: str) -> bool:
    return len(set(text)) == 1


def _has_bytes(tokens: dict[str, int]) -> bool:
    return all(f"<0x{byte:02X}>" in tokens for byte in range(256))


def _decoder(*, strips: bool) -> decoders.Decoder:
    steps = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    if strips:
        steps.append(decoders.Strip(" ", 1, 0))
    return decoders.Sequence(steps)


def _letters_of_bytes() -> list[str]:
    """What byte-level tokenizers write for each byte that a valid text can hold."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown}
    letters |= {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [letters[byte] for byte in range(256) if byte not in (0xC0, 0xC1) and byte < 0xF5]


def _one_of(letters: list[str]) -> str:
    signs = [f"\\{letter}" if letter in r"[]\^-&" else letter for letter in letters]
    return f"[{''.join(signs)}]"
