package io.edgeinfinite.core.tools

import io.edgeinfinite.core.DEEPEST_JSON

/**
 * The words and texts of a source in Python, read from its start.
 *
 * @throws NoCallException it can't be Python's.
 */
internal class PythonSource(
    given: String,
) {
    val text = given.replace("\r\n", "\n").replace('\r', '\n')
    var at = 0
    private var depth = 0

    init {
        if ('\u0000' in text) throw NoCallException("a null character")
    }

    val isAtEnd: Boolean get() = at >= text.length

    /** Whether what comes next would belong to a word before it. */
    val isInWord: Boolean
        get() = !isAtEnd && text.codePointAt(at).let { it == '_'.code || isPart(it) }

    fun isNext(word: String): Boolean = text.startsWith(word, at)

    /** Takes a sign, and the white space behind it. */
    fun take(sign: String): Boolean {
        if (!isNext(sign)) return false
        at += sign.length
        skip()
        return true
    }

    /** Takes an opening bracket. */
    fun open(bracket: Char): Boolean {
        if (!isNext(bracket.toString())) return false
        if (++depth > DEEPEST_JSON) throw NoCallException("nested too deeply")
        return take(bracket.toString())
    }

    /** Takes a closing bracket. */
    fun close(bracket: Char): Boolean {
        if (!isNext(bracket.toString())) return false
        depth -= 1
        return take(bracket.toString())
    }

    /** Skips white space and comments; new lines only between brackets. */
    fun skip() {
        while (!isAtEnd) {
            val unit = text[at]
            when {
                unit in " \t\u000c" || (unit == '\n' && depth > 0) -> at += 1
                unit == '\\' && text.getOrNull(at + 1) == '\n' -> at += 2
                unit == '#' -> at = text.indexOf('\n', at).let { if (it < 0) text.length else it }
                else -> return
            }
        }
    }

    /** Nothing more may come but white space and comments. */
    fun end() {
        while (!isAtEnd) {
            val before = at
            skip()
            if (isNext("\n")) at += 1
            if (at == before) throw NoCallException("something follows")
        }
    }

    /** An identifier, null for none. */
    fun word(): String? {
        if (isAtEnd) return null
        val first = text.codePointAt(at)
        if (first != '_'.code && !Character.isUnicodeIdentifierStart(first)) return null
        val start = at
        while (isInWord) at += Character.charCount(text.codePointAt(at))
        return text.substring(start, at)
    }

    private fun isPart(point: Int) =
        Character.isUnicodeIdentifierPart(point) && !Character.isIdentifierIgnorable(point)

    /** A text in quotes, null for none. */
    fun text(): String? {
        val isRaw = isOneOf(RAW)
        val quoteAt = if (isRaw || isOneOf(PLAIN)) at + 1 else at
        val quote = text.getOrNull(quoteAt)
        if (quote != '"' && quote != '\'') return null
        val mark = if (text.startsWith(quote.toString().repeat(3), quoteAt)) quote.toString().repeat(3) else "$quote"
        at = quoteAt + mark.length
        val read = StringBuilder()
        while (!isNext(mark)) {
            val unit = text.getOrNull(at++) ?: throw NoCallException("a text has no end")
            when {
                unit == '\n' && mark.length == 1 -> throw NoCallException("a text has no end")
                unit != '\\' -> read.append(unit)
                isRaw -> read.append(unit).append(text.getOrNull(at++) ?: throw NoCallException("a text has no end"))
                else -> escape(read)
            }
        }
        at += mark.length
        return read.toString()
    }

    private fun isOneOf(letters: String) = text.getOrNull(at)?.let { it in letters } == true

    private fun escape(read: StringBuilder) {
        val letter = text.getOrNull(at++) ?: throw NoCallException("a text has no end")
        val digits = CODES[letter]
        when {
            letter == '\n' -> Unit
            letter in ESCAPES -> read.append(ESCAPES.getValue(letter))
            letter in '0'..'7' -> {
                val octal = text.substring(at - 1, minOf(at + 2, text.length)).takeWhile { it in '0'..'7' }
                at += octal.length - 1
                read.append(octal.toInt(8).toChar())
            }
            digits != null -> read.appendCodePoint(code(digits))
            letter == 'N' -> throw NoCallException("a character by its name")
            else -> read.append('\\').append(letter)
        }
    }

    private fun code(digits: Int): Int {
        val written = text.substring(at, minOf(at + digits, text.length))
        val code = if (written.all { it in "0123456789abcdefABCDEF" }) written.toLongOrNull(16) else null
        if (written.length < digits || code == null || code > Character.MAX_CODE_POINT) {
            throw NoCallException("a broken escape")
        }
        at += digits
        return code.toInt()
    }

    private companion object {
        const val RAW = "rR"
        const val PLAIN = "uU"
        val CODES = mapOf('x' to 2, 'u' to 4, 'U' to 8)
        val ESCAPES =
            mapOf(
                '\\' to '\\',
                '\'' to '\'',
                '"' to '"',
                'a' to '\u0007',
                'b' to '\b',
                'f' to '\u000c',
                'n' to '\n',
                'r' to '\r',
                't' to '\t',
                'v' to '\u000b',
            )
    }
}
