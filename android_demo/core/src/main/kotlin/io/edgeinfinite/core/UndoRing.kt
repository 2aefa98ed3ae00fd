package io.edgeinfinite.core

/**
 * What a conversation was before its newest turns: forks of its session.
 *
 * The oldest one is given up when there are more than [size]. Each holds a copy of the state, as soon
 * as the next turn is read.
 */
internal class UndoRing(
    private val size: Int,
) : AutoCloseable {
    /** The session, the history's length and whether a document waited for its question. */
    class Snapshot(
        val session: Session,
        val turns: Int,
        val turnIsOpen: Boolean,
    )

    private val snapshots = ArrayDeque<Snapshot>()

    init {
        if (size <
            0
        ) {
            throw EdgeInfiniteException(
                ErrorCode.INVALID_ARGUMENT,
                "$size turns can't be kept for undo; give at least 0",
            )
        }
    }

    /** How many turns can be taken back. */
    val count: Int get() = snapshots.size

    fun keep(
        session: Session,
        turns: Int,
        turnIsOpen: Boolean,
    ) {
        if (size == 0) return
        if (count == size) snapshots.removeFirst().session.close()
        snapshots.addLast(Snapshot(session.fork(), turns, turnIsOpen))
    }

    /** The newest snapshot, no longer in the ring; its session is the caller's to close. */
    fun take(): Snapshot? = snapshots.removeLastOrNull()

    override fun close() {
        snapshots.forEach { it.session.close() }
        snapshots.clear()
    }
}
