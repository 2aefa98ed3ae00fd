package io.edgeinfinite.core

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.doubleOrNull
import kotlinx.serialization.json.intOrNull

private const val MOST_IDS = 1_000
private const val END = "eos_token_id"

/**
 * The tokens that end an answer, from the fields of `generation_config.json`. As Python's
 * `generation_config.py`, everything else that a sampler could take from it is range-checked too: a file
 * with impossible settings is damaged.
 *
 * @param vocabulary V of the model; null where it isn't known.
 * @throws IllegalArgumentException a token is outside the vocabulary, or a setting out of range.
 */
internal fun stopIds(
    fields: JsonObject,
    vocabulary: Int?,
): Set<Int> {
    val ids = listOf(END, "bos_token_id", "pad_token_id").associateWith { idsOf(it, fields[it], vocabulary) }
    numberOf("temperature", fields) { it >= 0 }
    numberOf("top_p", fields) { it > 0 && it <= 1 }
    numberOf("repetition_penalty", fields) { it > 0 }
    numberOf("top_k", fields) { it >= 0 && it == Math.rint(it) && isWhole(fields.getValue("top_k")) }
    return ids.getValue(END)
}

private fun idsOf(
    name: String,
    value: JsonElement?,
    vocabulary: Int?,
): Set<Int> {
    val ids = if (value is JsonArray) value else listOfNotNull(value).filter { it !is JsonNull }
    require(ids.size <= MOST_IDS) { "$name has ${ids.size} ids" }
    // Some checkpoints write -1 for "none".
    val least = if (name == END) 0 else -1
    return ids.mapTo(HashSet()) { id ->
        val one = (id as? JsonPrimitive)?.takeIf { isWhole(it) }?.intOrNull
        requireNotNull(one) { "$name is $value, not a token id or a list of them" }
        require(one >= least && (vocabulary == null || one < vocabulary)) {
            "$name is $one, outside the vocabulary of $vocabulary"
        }
        one
    }
}

private fun numberOf(
    name: String,
    fields: JsonObject,
    isInRange: (Double) -> Boolean,
) {
    val value = fields[name] ?: return
    if (value is JsonNull) return
    val number = (value as? JsonPrimitive)?.takeIf { !it.isString }?.doubleOrNull
    require(number != null && number.isFinite() && isInRange(number)) { "$name is $value, out of range" }
}

/** Whether it is written as a whole number: `3`, not `3.0` and not `"3"`. */
private fun isWhole(value: JsonElement): Boolean =
    value is JsonPrimitive && !value.isString && value.content.removePrefix("-").all { it in '0'..'9' }
