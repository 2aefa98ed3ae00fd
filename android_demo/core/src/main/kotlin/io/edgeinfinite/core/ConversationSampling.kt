package io.edgeinfinite.core

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import kotlinx.serialization.json.doubleOrNull
import kotlinx.serialization.json.intOrNull
import java.io.File
import java.io.IOException

private val ENDS = RepetitionDetection()

/**
 * For a checkpoint whose generation config doesn't say how to sample; measured on questions about
 * paragraphs and on free prompts (experiments/sampling.md).
 */
public val DEFAULT_SAMPLING: SamplingOptions =
    SamplingOptions(
        temperature = 0.3,
        topP = 0.9,
        repetitionPenalty = 1.1,
        repetitionDetection = ENDS,
    )

/**
 * How a conversation with an artifact samples unless the user says otherwise, as Python's
 * `sampling_defaults.py`.
 *
 * A generation config that says anything about sampling decides alone. What it leaves out is off; one
 * that says `do_sample: false` is greedy. Where it says nothing, or can't be read, it is
 * [DEFAULT_SAMPLING]. Whatever it says, an answer that repeats itself ends.
 *
 * @param folder the artifact's.
 */
public suspend fun conversationSampling(folder: File): SamplingOptions =
    withContext(Dispatchers.IO) { readConversationSampling(folder) }

internal fun readConversationSampling(folder: File): SamplingOptions {
    val fields =
        try {
            Json.parseToJsonElement(File(folder, "generation_config.json").readText()) as? JsonObject
        } catch (_: IOException) {
            null
        } catch (_: SerializationException) {
            null
        }
    fun field(name: String): JsonPrimitive? = fields?.get(name) as? JsonPrimitive
    val temperature = field("temperature")?.doubleOrNull
    val topK = field("top_k")?.intOrNull
    val topP = field("top_p")?.doubleOrNull
    val penalty = field("repetition_penalty")?.doubleOrNull
    val samples = field("do_sample")?.booleanOrNull
    if (samples != true && listOf(temperature, topK, topP, penalty).all { it == null }) {
        return if (samples == false) SamplingOptions(repetitionDetection = ENDS) else DEFAULT_SAMPLING
    }
    return try {
        SamplingOptions(
            temperature = if (samples == false) 0.0 else temperature ?: 1.0,
            topK = topK ?: 0,
            topP = topP ?: 1.0,
            repetitionPenalty = penalty ?: 1.0,
            repetitionDetection = ENDS,
        )
    } catch (_: EdgeInfiniteException) { // a value out of range
        DEFAULT_SAMPLING
    }
}
