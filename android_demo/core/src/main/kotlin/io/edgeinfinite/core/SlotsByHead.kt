package io.edgeinfinite.core

import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject

/**
 * Whether a manifest's or a session header's geometry says which KV heads each cache holds.
 *
 * Exports made more than one cache a layer until 2026-11-28. Readers skip fields that they don't know, so
 * without this check such a file would be read as one that has a cache for each layer.
 *
 * @param text a JSON object.
 * @throws SerializationException it isn't JSON.
 */
internal fun hasSlotsByHead(text: String): Boolean {
    val geometry = (Json.parseToJsonElement(text) as? JsonObject)?.get("geometry") as? JsonObject ?: return false
    return geometry["caches"].let { it != null && it != JsonNull }
}
