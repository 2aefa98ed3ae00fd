"""Writes WordSymbols.kt: what the signs of Word's fonts for symbols are in Unicode.

It is what Python's reader makes of them, by mammoth's table. Run it when mammoth is updated:

    python tests/android/word_symbols.py
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from mammoth.docx.dingbats import dingbats

TARGET = (
    Path(__file__).parents[2]
    / "android_demo/app/src/main/kotlin/io/edgeinfinite/app/documents/WordSymbols.kt"
)
FIRST, LAST = 32, 255

HEADER = """package io.edgeinfinite.app.documents

/**
 * What the signs of Word's fonts for symbols are in Unicode; the table is written by
 * tests/android/word_symbols.py, don't edit it.
 *
 * From code 32 on: a code point in hexadecimal, with `+` and how many follow it if those after it
 * do; `-` and a number for so many codes that stand for nothing.
 */
internal object WordSymbols {
    private const val FIRST = 32
    private const val HEX = 16

    /** Fonts' own codes, where Unicode has them for private use. */
    private const val PRIVATE = 0xf000

    /**
     * @param font that the sign is of.
     * @param code of the sign there, in hexadecimal.
     * @return "" if nobody knows it.
     */
    fun of(
        font: String,
        code: String,
    ): String {
        val stated = code.toIntOrNull(HEX) ?: return ""
        val at = (if (stated >= PRIVATE) stated - PRIVATE else stated) - FIRST
        val point = FONTS[font]?.value?.getOrNull(at) ?: return ""
        return String(Character.toChars(point))
    }

    /** A text of a run in a font: signs of these fonts as Unicode's, all others as they stand. */
    fun shown(
        text: String,
        font: String?,
    ): String {
        if (font !in FONTS) return text
        return buildString(text.length) {
            for (sign in text) {
                val found = if (sign == ' ') "" else of(font.orEmpty(), sign.code.toString(HEX))
                append(found.ifEmpty { "$sign" })
            }
        }
    }

    private fun table(written: String): Lazy<List<Int?>> =
        lazy {
            written.split(' ').flatMap { run ->
                if (run.startsWith('-')) {
                    List(run.drop(1).toInt()) { null }
                } else {
                    val start = run.substringBefore('+').toInt(HEX)
                    List(1 + run.substringAfter('+', "0").toInt()) { start + it }
                }
            }
        }

    private val FONTS =
        mapOf(
"""


def main() -> None:
    fonts = sorted({font for font, _ in dingbats})
    body = "".join(
        f'            "{font}" to\n                table(\n{_table(font)}' for font in fonts
    )
    TARGET.write_text(HEADER + body + "        )\n}\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(dingbats):,} signs of {len(fonts)} fonts")


def _table(font: str) -> str:
    lines = textwrap.wrap(" ".join(runs(font)), 88)
    pieces = [f'"{line} " +' for line in lines[:-1]] + [f'"{lines[-1]}",']
    indent = " " * 20
    rest = "".join(f"    {indent}{piece}\n" for piece in pieces[1:])
    return f"{indent}{pieces[0]}\n{rest}                ),\n"


def runs(font: str) -> list[str]:
    """The table of a font, see `HEADER`."""
    found: list[str] = []
    code = FIRST
    while code <= LAST:
        point, start = dingbats.get((font, code)), code
        while code <= LAST and dingbats.get((font, code)) == (
            None if point is None else point + code - start
        ):
            code += 1
        if point is None:
            found.append(f"-{code - start}")
        else:
            found.append(f"{point:x}" + (f"+{code - start - 1}" if code > start + 1 else ""))
    return found


if __name__ == "__main__":
    main()
