package io.edgeinfinite.core.tokenizer

import java.util.BitSet

/** A set of code points. */
internal fun interface CharSet {
    operator fun contains(point: Int): Boolean
}

/** Character classes, the same on every device and JVM; see [UNICODE_RUNS]. */
internal object Characters {
    private val classes: ByteArray = unpack(UNICODE_RUNS)

    private val normalized: BitSet by lazy { unpackNormalized() }

    /** What normal forms change; see [NORMALIZED_RUNS]. */
    val NORMALIZED = CharSet { normalized[it] }

    /** `\s` */
    val WHITE_SPACE = CharSet(::isWhiteSpace)

    /** Rust's `char::is_numeric`, what the `Digits` pre-tokenizer splits at. */
    val NUMERIC = CharSet { classOf(it) in "NOR" }

    /** `\w`: letters, marks, decimal digits and connectors. */
    val WORD = CharSet { classOf(it) in "ABCDEMN" || it == '_'.code }

    /**
     * The members of `\p{name}`.
     *
     * @return null for a class that the table doesn't have.
     */
    fun property(name: String): CharSet? {
        val letters =
            when (name) {
                "L", "Letter" -> "ABCDE"
                "Lu" -> "A"
                "Ll" -> "B"
                "Lt" -> "C"
                "Lm" -> "D"
                "Lo" -> "E"
                "M", "Mark" -> "M"
                "N", "Number" -> "NO"
                "Nd" -> "N"
                "P", "Punctuation" -> "P"
                "S", "Symbol" -> "S"
                else -> return null
            }
        return CharSet { classOf(it) in letters }
    }

    fun isWhiteSpace(point: Int): Boolean =
        when (point) {
            in 0x09..0x0d, 0x20, 0x85, 0xa0, 0x1680, in 0x2000..0x200a -> true
            0x2028, 0x2029, 0x202f, 0x205f, 0x3000 -> true
            else -> false
        }

    private fun classOf(point: Int): Char = classes[point].toInt().toChar()

    private fun unpack(runs: String): ByteArray {
        val unpacked = ByteArray(Character.MAX_CODE_POINT + 1)
        var point = 0
        var at = 0
        while (at < runs.length) {
            val letter = runs[at]
            var end = at + 1
            while (end < runs.length && !runs[end].isUpperCase()) end += 1
            val count = if (end == at + 1) 1 else runs.substring(at + 1, end).toInt(BASE)
            unpacked.fill(letter.code.toByte(), point, point + count)
            point += count
            at = end
        }
        return unpacked
    }

    private fun unpackNormalized(): BitSet {
        val members = BitSet()
        var point = 0
        NORMALIZED_RUNS.split(' ').forEachIndexed { index, run ->
            val end = point + run.toInt(BASE)
            if (index % 2 == 1) members.set(point, end)
            point = end
        }
        return members
    }

    private const val BASE = 36
}

/** The code points of a text, with the place of each among its UTF-16 units. */
internal class CodePoints(
    text: String,
) {
    val points: IntArray = text.codePoints().toArray()
    private val starts = IntArray(points.size + 1)

    init {
        for (index in points.indices) {
            starts[index + 1] = starts[index] + Character.charCount(points[index])
        }
    }

    /** Where code point [index] starts in the text. */
    fun start(index: Int): Int = starts[index]
}
