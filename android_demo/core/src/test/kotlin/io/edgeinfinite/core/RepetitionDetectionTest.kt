package io.edgeinfinite.core

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.util.Random

/** An answer that says one piece over and over ends. */
class RepetitionDetectionTest {
    /** The definition: the end of the text is some pattern, written [count] times. */
    private fun saidOftenEnough(
        tokens: List<Int>,
        sizes: IntRange,
        count: Int,
    ) = sizes.any { size ->
        size * count <= tokens.size && tokens.takeLast(size * count).chunked(size).distinct().size == 1
    }

    @Test
    fun `it finds what ends in a pattern said often enough and nothing else`() {
        val random = Random(0)
        var found = 0
        repeat(5_000) {
            val tokens = List(random.nextInt(30)) { random.nextInt(2) }
            val smallest = 1 + random.nextInt(5)
            val largest = smallest + random.nextInt(5)
            val count = 2 + random.nextInt(3)
            val expected = saidOftenEnough(tokens, smallest..largest, count)
            assertEquals(expected, RepetitionDetection(largest, smallest, count).found(tokens))
            if (expected) found += 1
        }
        assertTrue(found > 300, "$found")
    }

    @Test
    fun `by default a sentence said three times is noticed and a short one later`() {
        fun endsAfter(size: Int): Int {
            val tokens = List(500) { 1_000 + it % size }
            return tokens.indices.first { RepetitionDetection().found(tokens.take(it)) }
        }
        assertEquals(
            listOf(48, 48, 60, 63, 48, 120, 384),
            listOf(1, 2, 5, 7, 16, 40, 128).map(::endsAfter),
        )
        assertFalse(RepetitionDetection().found(List(500) { it % 129 }))
        assertFalse(RepetitionDetection.OFF.found(List(500) { 7 }))
    }

    @Test
    fun `numbers out of range are refused`() {
        listOf(
            { RepetitionDetection(-1) },
            { RepetitionDetection(1_000_000) },
            { RepetitionDetection(minPatternSize = 129) },
            { RepetitionDetection(minPatternSize = -1) },
            { RepetitionDetection(minCount = 1) },
            { RepetitionDetection(minCount = 1_000_000) },
        ).forEach { assertThrows(EdgeInfiniteException::class.java) { it() } }
    }
}
