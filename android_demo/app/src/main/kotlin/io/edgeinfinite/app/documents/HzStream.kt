package io.edgeinfinite.app.documents

import java.io.InputStream
import java.nio.charset.MalformedInputException

/**
 * HZ (RFC 1843), Chinese mail in seven bits, as bytes of GB 18030.
 *
 * @param source its bytes; what isn't HZ ends with a [MalformedInputException].
 */
internal class HzStream(
    private val source: InputStream,
) : InputStream() {
    private var isInside = false
    private var isFirst = false
    private var isBroken = false
    private var second = NONE
    private var pairs = 0L
    private var common = 0L

    /** Whether all that its escapes enclosed is Chinese, as no other text has it; known at the end. */
    val isChinese get() = pairs > 0 && 2 * common > pairs

    override fun read(): Int {
        if (isBroken) malformed()
        if (second != NONE) return second.also { second = NONE }
        while (true) {
            val sign = source.read()
            if (sign < 0) return if (isInside) malformed() else sign
            if (sign >= HIGH) malformed()
            if (!isInside && sign != TILDE) return sign
            val next = source.read()
            when {
                isInside && sign == TILDE -> {
                    if (next != CLOSE || isFirst) malformed()
                    isInside = false
                }
                isInside -> return pair(sign, next)
                next == TILDE -> return TILDE
                next == OPEN -> {
                    isInside = true
                    isFirst = true
                }
                next != NEWLINE -> malformed()
            }
        }
    }

    private fun pair(
        first: Int,
        next: Int,
    ): Int {
        if (first !in FIRST || next !in SECOND) malformed()
        isFirst = false
        pairs += 1
        if (first <= COMMON) common += 1
        second = next or HIGH
        return first or HIGH
    }

    private fun malformed(): Nothing {
        isBroken = true // who reads many bytes at once asks again
        throw MalformedInputException(1)
    }

    private companion object {
        const val NONE = -2
        const val HIGH = 0x80
        const val TILDE = '~'.code
        const val OPEN = '{'.code
        const val CLOSE = '}'.code
        const val NEWLINE = '\n'.code
        val FIRST = 0x21..0x77
        val SECOND = 0x21..0x7e

        /** The first byte of signs and usual characters, at most; letters of ASCII words are mostly beyond. */
        const val COMMON = 0x57
    }
}
