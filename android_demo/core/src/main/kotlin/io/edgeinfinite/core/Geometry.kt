package io.edgeinfinite.core

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable

/**
 * The geometry of the fixed-size KV cache,
 * `[S sinks | G recall slots | residual of at most N + W tokens]`.
 *
 * Letters used in shapes all over the project: B batch (1), L layers, H query heads, K KV heads,
 * T new tokens, C cache capacity, D head dimension, V vocabulary, S sinks, G recall slots, N segment,
 * W window.
 *
 * @property segmentLength N, tokens folded into the memory at once.
 * @property sinkLength S, first tokens of the text, attended by every segment, never compressed.
 * @property windowLength W, newest tokens that a compression leaves in the cache, at least 1.
 * @property policy what stays in the cache at a compression, see [Policy].
 * @property recallSlots G, pairs that the retention scorer keeps; 0 under `reencode`.
 */
@Serializable
data class Geometry(
    @SerialName("segment_length") val segmentLength: Int,
    @SerialName("sink_length") val sinkLength: Int,
    @SerialName("window_length") val windowLength: Int,
    val policy: String,
    @SerialName("recall_slots") val recallSlots: Int = 0,
) {
    /** C = S + G + N + W, slots of the cache in every layer. */
    val capacity: Int get() = sinkLength + recallSlots + segmentLength + windowLength

    /**
     * @throws EdgeInfiniteException a length is out of range or the policy is unknown.
     */
    internal fun check() {
        if (segmentLength < 1 || sinkLength < 0 || windowLength < 1 || recallSlots < 0) {
            throw EdgeInfiniteException(
                "the artifact's geometry is impossible (N $segmentLength, S $sinkLength, " +
                    "W $windowLength, G $recallSlots); export the artifact again",
            )
        }
        Policy.named(policy)
    }
}
