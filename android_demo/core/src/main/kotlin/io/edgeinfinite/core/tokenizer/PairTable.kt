package io.edgeinfinite.core.tokenizer

/** Merges by pair of token ids: rank and resulting id, in flat arrays (a quarter million fit). */
internal class PairTable(
    pairs: Int,
) {
    private val slots = Integer.highestOneBit(maxOf(pairs, 1) * 2) * 2
    private val keys = LongArray(slots) { EMPTY }
    private val ranks = IntArray(slots)
    private val results = IntArray(slots)

    /** The last one counts when a pair is given twice, as in the tokenizers library. */
    fun put(
        left: Int,
        right: Int,
        rank: Int,
        result: Int,
    ) {
        val key = keyOf(left, right)
        val slot = slotOf(key)
        keys[slot] = key
        ranks[slot] = rank
        results[slot] = result
    }

    /** Where the pair stands, for [rank] and [result]; -1 when the two don't merge. */
    fun find(
        left: Int,
        right: Int,
    ): Int {
        val key = keyOf(left, right)
        val slot = slotOf(key)
        return if (keys[slot] == key) slot else -1
    }

    fun rank(slot: Int): Int = ranks[slot]

    fun result(slot: Int): Int = results[slot]

    private fun keyOf(
        left: Int,
        right: Int,
    ): Long = (left.toLong() shl Int.SIZE_BITS) or right.toLong()

    private fun slotOf(key: Long): Int {
        var slot = ((key * SPREAD) ushr 32).toInt() and (slots - 1)
        while (keys[slot] != EMPTY && keys[slot] != key) slot = (slot + 1) and (slots - 1)
        return slot
    }

    private companion object {
        const val EMPTY = -1L
        const val SPREAD = -7046029254386353131L // 2^64 / golden ratio
    }
}
