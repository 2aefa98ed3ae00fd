package io.edgeinfinite.core

import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.builtins.ListSerializer
import kotlinx.serialization.builtins.serializer
import kotlinx.serialization.encoding.Decoder
import kotlinx.serialization.encoding.Encoder
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonDecoder
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonPrimitive

/**
 * The geometry of the fixed-size KV cache,
 * `[S sinks | G recall slots | residual of at most N + W tokens]`.
 *
 * Letters in shapes: B batch (1), L layers, H query heads, K KV heads, T new tokens, C cache
 * capacity, D head dimension, V vocabulary, S sinks, G recall slots, N segment, W window.
 *
 * @property segmentLength N, tokens folded into the memory at once.
 * @property sinkLength S, first tokens of the text, attended by every segment, never compressed.
 * @property windowLength W, newest tokens that a compression leaves in the cache, at least 1.
 * @property policy what stays in the cache at a compression, see [Policy].
 * @property recallSlots G, pairs that the retention scorer keeps: one number for all layers, or one
 *   for each; 0 under `reencode`.
 * @property slidingWindows of every layer, the newest tokens that a token sees in it, itself
 *   included; 0: it attends to everything. A layer with such a window holds it and nothing else. Null
 *   where all layers attend to everything.
 */
@Serializable
public data class Geometry(
    @SerialName("segment_length") val segmentLength: Int,
    @SerialName("sink_length") val sinkLength: Int,
    @SerialName("window_length") val windowLength: Int,
    val policy: String,
    @SerialName("recall_slots")
    @Serializable(RecallSlotsSerializer::class)
    val recallSlots: List<Int> = listOf(0),
    @SerialName("sliding_windows") val slidingWindows: List<Int>? = null,
) {
    /** The largest G of any layer. */
    val mostSlots: Int get() = recallSlots.max()

    /** C = S + G + N + W, slots of the layer with most recall slots. */
    val capacity: Int get() = sinkLength + mostSlots + segmentLength + windowLength

    /** A layer that attends to everything, with most recall slots: no other such layer has more in use. */
    val longestLayer: Int get() =
        if (recallSlots.size > 1) recallSlots.indexOf(mostSlots) else slidingWindows?.indexOf(0) ?: 0

    /** G of a layer. */
    public fun slotsOf(layer: Int): Int =
        when {
            slides(layer) -> 0
            recallSlots.size == 1 -> recallSlots[0]
            else -> recallSlots[layer]
        }

    /** Whether a layer has a sliding window. */
    public fun slides(layer: Int): Boolean = (slidingWindows?.get(layer) ?: 0) > 0

    /** Tokens that a compression leaves in a layer with a sliding window; the next one sees these. */
    public fun keptOf(layer: Int): Int = checkNotNull(slidingWindows)[layer] - 1

    /**
     * @param layers of the model.
     * @throws EdgeInfiniteException a length is out of range or the policy is unknown.
     */
    internal fun check(layers: Int) {
        val isForLayers = recallSlots.size == 1 || recallSlots.size == layers
        val isInRange = segmentLength >= 1 && sinkLength >= 0 && windowLength >= 1 && recallSlots.all { it >= 0 }
        // One layer must attend to everything: it says where the text stands.
        val hasWindows = slidingWindows?.let { it.size == layers && it.all { w -> w >= 0 } && 0 in it } ?: true
        if (!isForLayers || !isInRange || !hasWindows) {
            throw EdgeInfiniteException(
                ErrorCode.ARTIFACT_DAMAGED,
                "the artifact's geometry is impossible (N $segmentLength, S $sinkLength, " +
                    "W $windowLength, G ${recallSlots.joinToString()}, sliding windows " +
                    "${slidingWindows.orEmpty().joinToString()}); export the artifact again",
            )
        }
        Policy.named(policy)
    }
}

/** In the manifest and in session files: a number, or a list of them. */
private object RecallSlotsSerializer : KSerializer<List<Int>> {
    private val list = ListSerializer(Int.serializer())
    override val descriptor = list.descriptor

    override fun deserialize(decoder: Decoder): List<Int> =
        when (val element = (decoder as JsonDecoder).decodeJsonElement()) {
            is JsonArray -> element.map { it.jsonPrimitive.int }.also { require(it.isNotEmpty()) { "no recall slots" } }
            else -> listOf(element.jsonPrimitive.int)
        }

    override fun serialize(
        encoder: Encoder,
        value: List<Int>,
    ) = if (value.size == 1) encoder.encodeInt(value[0]) else list.serialize(encoder, value)
}
