package io.edgeinfinite.core

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.decodeFromJsonElement
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.io.File

/** How a conversation samples where the user doesn't say. */
class ConversationSamplingTest {
    @TempDir
    lateinit var folder: File

    private val ends = RepetitionDetection(128, 16, 3)
    private val fallback =
        SamplingOptions(temperature = 0.3, topP = 0.9, repetitionPenalty = 1.1, repetitionDetection = ends)

    private fun samplingOf(settings: String): SamplingOptions {
        File(folder, "generation_config.json").writeText(settings)
        return readConversationSampling(folder)
    }

    @Serializable
    private class Case(
        val settings: JsonObject,
        val sampling: Sampling,
    )

    @Serializable
    private class Sampling(
        val temperature: Double,
        @SerialName("top_k") val topK: Int,
        @SerialName("top_p") val topP: Double,
        @SerialName("min_p") val minP: Double,
        @SerialName("repetition_penalty") val penalty: Double,
        @SerialName("repetition_detection") val detection: Detection,
    )

    @Serializable
    private class Detection(
        @SerialName("max_pattern_size") val largest: Int,
        @SerialName("min_pattern_size") val smallest: Int,
        @SerialName("min_count") val count: Int,
    )

    @Test
    fun `a generation config leads to the options that it leads to in Python`() {
        val cases = Json.decodeFromJsonElement<List<Case>>(Fixtures.json("sampling/defaults.json"))
        assertTrue(cases.map { it.sampling.temperature }.toSet().containsAll(listOf(0.0, 0.3, 0.6, 1.0)))
        for (case in cases) {
            val expected =
                case.sampling.run {
                    SamplingOptions(
                        temperature,
                        topK,
                        topP,
                        minP,
                        repetitionPenalty = penalty,
                        repetitionDetection =
                        RepetitionDetection(detection.largest, detection.smallest, detection.count),
                    )
                }
            assertEquals(expected, samplingOf(case.settings.toString()), case.settings.toString())
        }
    }

    @Test
    fun `a file that is missing, damaged or out of range means values that answer well`() {
        assertEquals(fallback, readConversationSampling(folder))
        for (bad in listOf("{", "[]", """{"top_p": 7}""")) assertEquals(fallback, samplingOf(bad))
    }
}
