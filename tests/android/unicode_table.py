"""Writes UnicodeTable.kt: the character classes that the tokenizers library itself uses.

A phone's regular expressions know the Unicode version of its Android, a JVM another one; token ids
must depend on neither. Each code point is asked of the library's own pre-tokenizers, so the table
is what it does rather than what a standard says. Takes a minute; run it when tokenizers is updated:

    python tests/android/unicode_table.py
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

from tokenizers import Regex, normalizers
from tokenizers.pre_tokenizers import Digits, Split

TARGET = (
    Path(__file__).parents[2]
    / "android_demo/core/src/main/kotlin/io/edgeinfinite/core/tokenizer/UnicodeTable.kt"
)
LAST = 0x10FFFF
CLASSES = {
    "A": "Lu", "B": "Ll", "C": "Lt", "D": "Lm", "E": "Lo",
    "M": "M", "N": "Nd", "O": "N", "P": "P", "S": "S",
}  # fmt: skip
OTHER = "X"
ONLY_RUST_NUMERIC = "R"
_OVERLAYS = [*range(0x334, 0x339), 0x20D2, 0x20D3, *range(0x20D8, 0x20DB), 0x20E5, 0x20E6, 0x20EA,
             0x20EB, 0x10A39, 0x16AF0, 0x16AF1, 0x16AF2, 0x16AF3, 0x16AF4, 0x1BC9E,
             *range(0x1D167, 0x1D16A)]  # fmt: skip
"""Marks of the lowest combining class, which don't reorder with each other."""

HEADER = """package io.edgeinfinite.core.tokenizer

/**
 * Classes of all code points, as the tokenizers library sees them; written by
 * tests/android/unicode_table.py, don't edit.
 *
 * Runs of code points from 0 on: a class's letter, then the run's length in base 36 (nothing for
 * 1). A Lu, B Ll, C Lt, D Lm, E Lo, M marks, N Nd, O other N, P punctuation, S symbols, X the rest,
 * R numeric for the `Digits` pre-tokenizer alone.
 */
internal const val UNICODE_RUNS: String =
"""

NORMALIZED = """
/**
 * The code points that the library's normalizers change, move or join; to it all others stay as
 * they are, even where a newer Unicode knows better. Lengths in base 36 of runs that are left alone
 * and runs that aren't, in turn.
 */
internal const val NORMALIZED_RUNS: String =
"""


def main() -> None:
    members = {letter: _members(rf"\p{{{name}}}") for letter, name in CLASSES.items()}
    is_rust_digit = _rust_numeric()

    def letter_of(point: int) -> str:
        if 0xD800 <= point < 0xE000:
            return OTHER
        for letter, is_member in members.items():
            if is_member(point):
                return letter
        return ONLY_RUST_NUMERIC if is_rust_digit(point) else OTHER

    runs: list[list[object]] = []
    for point in range(LAST + 1):
        letter = letter_of(point)
        if runs and runs[-1][0] == letter:
            runs[-1][1] += 1  # type: ignore[operator]
        else:
            runs.append([letter, 1])
    text = "".join(f"{letter}{_base36(count) if count > 1 else ''}" for letter, count in runs)
    changed = _normalized()
    TARGET.write_text(HEADER + _literal(text) + NORMALIZED + _literal(changed), encoding="utf-8")
    print(f"{TARGET}: {len(text)} + {len(changed)} characters")


def _normalized() -> str:
    """See `NORMALIZED`: what moves behind a mark of the lowest class, decomposes, or is a part."""
    decomposed = normalizers.NFKD()
    lowest = "\u0334"
    changed: set[str] = set(map(chr, _OVERLAYS))
    for point in range(LAST + 1):
        if 0xD800 <= point < 0xE000:
            continue
        character = chr(point)
        parts = decomposed.normalize_str(character)
        if parts != character:
            changed |= {character, *parts}
        elif decomposed.normalize_str(character + lowest) != character + lowest:
            changed.add(character)
    lengths = [0]
    for point in range(LAST + 1):
        if (chr(point) in changed) != (len(lengths) % 2 == 0):
            lengths.append(0)
        lengths[-1] += 1
    return " ".join(_base36(length) or "0" for length in lengths)


def _literal(text: str) -> str:
    lines = textwrap.wrap(text, 88, drop_whitespace=False)
    return " +\n".join(f'    "{line}"' for line in lines) + "\n"


def _members(pattern: str) -> Callable[[int], bool]:
    split = Split(Regex(pattern), "removed")
    return lambda point: not split.pre_tokenize_str(chr(point))


def _rust_numeric() -> Callable[[int], bool]:
    digits = Digits(individual_digits=False)
    return lambda point: len(digits.pre_tokenize_str("a" + chr(point))) == 2


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = digits[digit] + text
    return text


if __name__ == "__main__":
    main()
