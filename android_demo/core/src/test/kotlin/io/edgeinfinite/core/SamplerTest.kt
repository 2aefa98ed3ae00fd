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
        @SerialName("min_p") val minP: Double,
        val tokens: List<Int>,
        val probabilities: List<Double>,
    )

    @Test
    fun `the kept tokens and their probabilities are Python's`() {
        val cases = Json.decodeFromJsonElement<List<Case>>(Fixtures.json("sampling/cases.json"))
        assertTrue(cases.size > 50)
        for (case in cases) {
            val options = SamplingOptions(case.temperature, case.topK, case.topP, case.minP)
            val kept = candidates(DoubleArray(case.logits.size) { case.logits[it].toDouble() }, options)
            assertEquals(case.tokens, kept.tokens.toList())
            assertArrayEquals(case.probabilities.toDoubleArray(), kept.probabilities, 1e-12)
        }
    }

    @Serializable
    private class PenaltyCase(
        val logits: List<Float>,
        val answer: List<Int>,
        @SerialName("repetition_penalty") val repetition: Double,
        @SerialName("presence_penalty") val presence: Double,
        @SerialName("frequency_penalty") val frequency: Double,
        @SerialName("logit_bias") val bias: Map<Int, Double>,
        val adjusted: List<Double>,
    )

    @Test
    fun `bias and penalties change logits as in Python`() {
        val cases = Json.decodeFromJsonElement<List<PenaltyCase>>(Fixtures.json("sampling/penalties.json"))
        assertTrue(cases.size > 20)
        for (case in cases) {
            val options =
                SamplingOptions(
                    repetitionPenalty = case.repetition,
                    presencePenalty = case.presence,
                    frequencyPenalty = case.frequency,
                    logitBias = case.bias,
                )
            val changed = adjusted(case.logits.toFloatArray(), options, case.answer)
            assertArrayEquals(case.adjusted.toDoubleArray(), changed, 1e-12)
        }
    }

    @Test
    fun `penalties count for greedy answers`() {
        val logits = floatArrayOf(3f, 2.9f, 0f)
        val greedy = Sampler(SamplingOptions(repetitionPenalty = 1.1))
        assertEquals(0, greedy.sample(logits))
        assertEquals(1, greedy.sample(logits, answer = listOf(0)))
    }

    @Test
    fun `a bias of a token outside the vocabulary is refused`() {
        val options = SamplingOptions(logitBias = mapOf(7 to 1.0))
        options.checkVocabulary(8)
        assertThrows(EdgeInfiniteException::class.java) { options.checkVocabulary(7) }
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
                { SamplingOptions(minP = -0.1) },
                { SamplingOptions(minP = Double.NaN) },
                { SamplingOptions(repetitionPenalty = 0.0) },
                { SamplingOptions(presencePenalty = Double.NaN) },
                { SamplingOptions(frequencyPenalty = Double.POSITIVE_INFINITY) },
                { SamplingOptions(logitBias = mapOf(-1 to 1.0)) },
                { SamplingOptions(logitBias = mapOf(1 to Double.NEGATIVE_INFINITY)) },
                { SamplingOptions(seed = -1) },
            )
        bad.forEach { make -> assertThrows(EdgeInfiniteException::class.java) { make() } }
    }
}
