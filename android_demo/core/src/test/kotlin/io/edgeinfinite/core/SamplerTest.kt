package io.edgeinfinite.core

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.decodeFromJsonElement
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

class SamplerTest {
    @Serializable
    private class Case(
        val logits: List<Float>,
        val temperature: Double,
        @SerialName("top_k") val topK: Int,
        @SerialName("top_p") val topP: Double,
        val tokens: List<Int>,
        val probabilities: List<Double>,
    )

    @Test
    fun `the kept tokens and their probabilities are Python's`() {
        val cases = Json.decodeFromJsonElement<List<Case>>(Fixtures.json("sampling/cases.json"))
        assertTrue(cases.size > 50)
        for (case in cases) {
            val options = SamplingOptions(case.temperature, case.topK, case.topP)
            val kept = candidates(case.logits.toFloatArray(), options)
            assertEquals(case.tokens, kept.tokens.toList())
            assertArrayEquals(case.probabilities.toDoubleArray(), kept.probabilities, 1e-12)
        }
    }

    @Test
    fun `greedy takes the first of the likeliest`() {
        assertEquals(1, Sampler(SamplingOptions()).sample(floatArrayOf(0f, 3f, 3f, -1f)))
    }

    @Test
    fun `a seed fixes the choices and another one changes them`() {
        val logits = FloatArray(50) { it / 50f }

        fun drawn(seed: Long?) =
            Sampler(SamplingOptions(temperature = 1.0, seed = seed)).let { sampler ->
                List(40) { sampler.sample(logits) }
            }
        assertEquals(drawn(7), drawn(7))
        assertNotEquals(drawn(7), drawn(8))
        assertNotEquals(drawn(null), drawn(null))
    }

    @Test
    fun `tokens are drawn as often as their probability says`() {
        val sampler = Sampler(SamplingOptions(temperature = 1.0, topK = 2, seed = 1))
        val drawn = List(20_000) { sampler.sample(floatArrayOf(0f, Math.log(3.0).toFloat(), -5f)) }
        assertEquals(setOf(0, 1), drawn.toSet())
        assertEquals(0.75, drawn.count { it == 1 } / 20_000.0, 0.02)
    }

    @Test
    fun `logits that aren't finite are refused`() {
        for (bad in listOf(Float.NaN, Float.POSITIVE_INFINITY)) {
            assertThrows(EdgeInfiniteException::class.java) {
                Sampler(SamplingOptions()).sample(floatArrayOf(0f, bad, 1f))
            }
        }
    }

    @Test
    fun `options out of range are refused`() {
        val bad =
            listOf<() -> SamplingOptions>(
                { SamplingOptions(temperature = -1.0) },
                { SamplingOptions(temperature = Double.NaN) },
                { SamplingOptions(topK = -1) },
                { SamplingOptions(topP = 0.0) },
                { SamplingOptions(topP = 1.1) },
                { SamplingOptions(seed = -1) },
            )
        bad.forEach { make -> assertThrows(EdgeInfiniteException::class.java) { make() } }
    }
}
