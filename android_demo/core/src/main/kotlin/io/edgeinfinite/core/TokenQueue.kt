package io.edgeinfinite.core

/** Token ids in order, added and removed at both ends without copying the rest. */
public class TokenQueue {
    private var ids = IntArray(INITIAL)
    private var start = INITIAL / 2

    /** Number of ids. */
    public var size: Int = 0
        private set

    /** Whether the queue is empty. */
    public fun isEmpty(): Boolean = size == 0

    /** A copy of all ids, or of those from index [from] on; empty when there are fewer. */
    public fun toIntArray(from: Int = 0): IntArray =
        ids.copyOfRange(start + minOf(from, size), start + size)

    /** A copy of the first [count]. */
    internal fun first(count: Int): IntArray = ids.copyOfRange(start, start + count)

    internal fun addLast(more: IntArray) {
        reserve(0, more.size)
        more.copyInto(ids, start + size)
        size += more.size
    }

    internal fun addFirst(more: IntArray) {
        reserve(more.size, 0)
        start -= more.size
        more.copyInto(ids, start)
        size += more.size
    }

    internal fun removeFirst(count: Int) {
        require(count <= size)
        start += count
        size -= count
    }

    internal fun clear() {
        size = 0
    }

    private fun reserve(
        before: Int,
        after: Int,
    ) {
        if (start >= before && start + size + after <= ids.size) return
        val bigger = IntArray(2 * (size + before + after) + INITIAL)
        val middle = before + (bigger.size - size - before - after) / 2
        ids.copyInto(bigger, middle, start, start + size)
        ids = bigger
        start = middle
    }

    private companion object {
        const val INITIAL = 64
    }
}
