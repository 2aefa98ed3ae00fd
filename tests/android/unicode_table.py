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

from tokenizers import Regex
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
    lines = textwrap.wrap(text, 88)
    body = " +\n".join(f'    "{line}"' for line in lines)
    TARGET.write_text(HEADER + body + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(runs)} runs, {len(text)} characters")


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
