package io.edgeinfinite.core

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** Halves are numbers of 11 bits, rounded as IEEE 754 says. */
class HalfTest {
    private val finite = (0 until 0x7C00).map { it.toShort() }

    @Test
    fun `every half is the number of its bits, and comes back`() {
        for (half in finite) {
            val exponent = half.toInt() shr 10
            val mantissa = half.toInt() and 0x3FF
            val scaled = if (exponent == 0) mantissa.toDouble() else (0x400 + mantissa) * Math.scalb(1.0, exponent - 1)
            val number = scaled * Math.scalb(1.0, -24)
            val negative = (half.toInt() or 0x8000).toShort()
            assertEquals(number, halfToFloat(half).toDouble())
            assertEquals(-number, halfToFloat(negative).toDouble())
            assertEquals(half, floatToHalf(halfToFloat(half)))
            assertEquals(negative, floatToHalf(halfToFloat(negative)))
        }
    }

    @Test
    fun `between two halves the nearer one is taken, in the middle the even one`() {
        for ((low, high) in finite.zipWithNext()) {
            val middle = (halfToFloat(low) + halfToFloat(high)) / 2
            assertEquals(if (low % 2 == 0) low else high, floatToHalf(middle))
            assertEquals(low, floatToHalf(Math.nextDown(middle)))
            assertEquals(high, floatToHalf(Math.nextUp(middle)))
        }
    }

    @Test
    fun `what is too large is infinite, and NaN stays NaN`() {
        assertEquals(65504f, halfToFloat(floatToHalf(65519.996f)))
        assertEquals(Float.POSITIVE_INFINITY, halfToFloat(floatToHalf(65520f)))
        assertEquals(Float.NEGATIVE_INFINITY, halfToFloat(floatToHalf(-1e30f)))
        assertEquals(Float.NEGATIVE_INFINITY, halfToFloat(floatToHalf(Float.NEGATIVE_INFINITY)))
        assertTrue(halfToFloat(floatToHalf(Float.NaN)).isNaN())
    }
}
