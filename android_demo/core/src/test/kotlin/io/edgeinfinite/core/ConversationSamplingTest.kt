package io.edgeinfinite.core

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.io.File

/** The cases of tests/runtime_py/answer/test_sampling_defaults.py, and files that can't be used. */
class ConversationSamplingTest {
    @TempDir
    lateinit var folder: File

    private val fallback = SamplingOptions(temperature = 0.3, topP = 0.9, repetitionPenalty = 1.1)

    private fun samplingOf(settings: String): SamplingOptions {
        File(folder, "generation_config.json").writeText(settings)
        return readConversationSampling(folder)
    }

    @Test
    fun `the checkpoint decides`() {
        assertEquals(SamplingOptions(temperature = 0.3, topK = 20), samplingOf("""{"temperature": 0.3, "top_k": 20}"""))
        val penalty = SamplingOptions(temperature = 1.0, repetitionPenalty = 1.05)
        assertEquals(penalty, samplingOf("""{"repetition_penalty": 1.05}"""))
        assertEquals(SamplingOptions(temperature = 1.0), samplingOf("""{"do_sample": true}"""))
        val share = SamplingOptions(temperature = 1.0, topP = 0.8)
        assertEquals(share, samplingOf("""{"do_sample": true, "top_p": 0.8}"""))
        assertEquals(SamplingOptions(), samplingOf("""{"do_sample": false, "temperature": 0.3}"""))
        assertEquals(SamplingOptions(), samplingOf("""{"do_sample": false}"""))
    }

    @Test
    fun `its silence means values that read well`() {
        for (silent in listOf("{}", """{"eos_token_id": 2}""", """{"temperature": null}""")) {
            assertEquals(fallback, samplingOf(silent))
        }
    }

    @Test
    fun `so does a file that is missing, damaged or out of range`() {
        assertEquals(fallback, readConversationSampling(folder))
        for (bad in listOf("{", "[]", """{"top_p": 7}""")) assertEquals(fallback, samplingOf(bad))
    }
}
