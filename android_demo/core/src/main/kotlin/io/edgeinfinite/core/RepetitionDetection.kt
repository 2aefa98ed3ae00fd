package io.edgeinfinite.core

import kotlinx.serialization.Serializable

/**
 * Ends an answer whose newest tokens are one pattern, said several times without a gap. The same as
 * Python's `RepetitionDetection` (docs/sampling.md); the parameters are those of vLLM.
 *
 * By default a pattern has 16 tokens or more, so what is said three times is 48 tokens long at least: a run
 * of one token counts as a pattern of 16, and a short sentence is said more often before it is noticed.
 *
 * @property maxPatternSize the most tokens of a pattern; 0 detects nothing.
 * @property minPatternSize the fewest tokens of a pattern; 0 is as 1.
 * @property minCount how often in a row the pattern is said.
 * @throws EdgeInfiniteException a number is out of range.
 */
@Serializable
public data class RepetitionDetection
@JvmOverloads
constructor(
    val maxPatternSize: Int = 128,
    val minPatternSize: Int = 16,
    val minCount: Int = 3,
) {
    init {
        if (maxPatternSize !in 0..LARGEST) {
            refuse("maxPatternSize is $maxPatternSize; give a number from 0 (detects nothing) to $LARGEST")
        }
        if (maxPatternSize > 0) {
            if (minPatternSize !in 0..maxPatternSize) {
                refuse("minPatternSize is $minPatternSize; give a number from 0 to maxPatternSize, $maxPatternSize")
            }
            if (minCount !in 2..MOST_COUNTS) {
                refuse("minCount is $minCount; give a number from 2 to $MOST_COUNTS")
            }
        }
    }

    /** Whether [tokens], an answer so far, end in a pattern that is said often enough. */
    internal fun found(tokens: List<Int>): Boolean {
        if (maxPatternSize == 0) return false
        val most = minOf(maxPatternSize, tokens.size / minCount)
        return (maxOf(1, minPatternSize)..most).any { size ->
            val last = tokens.lastIndex
            (0 until size * (minCount - 1)).all { tokens[last - it] == tokens[last - it - size] }
        }
    }

    private fun refuse(message: String): Nothing = throw EdgeInfiniteException(ErrorCode.INVALID_ARGUMENT, message)

    public companion object {
        /** Detects nothing. */
        @JvmField
        public val OFF: RepetitionDetection = RepetitionDetection(maxPatternSize = 0)

        private const val LARGEST = 4096
        private const val MOST_COUNTS = 1000
    }
}
