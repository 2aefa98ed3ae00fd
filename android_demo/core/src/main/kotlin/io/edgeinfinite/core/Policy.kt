package io.edgeinfinite.core

/**
 * Decides when a session compresses and what stays in the cache. Has no state of its own.
 *
 * Letters: S sinks, G recall slots, N segment, W window, C capacity.
 */
internal sealed interface Policy {
    /** Whether to compress before reading more. */
    fun isDue(session: Session): Boolean

    /** Tokens that may be read before [isDue] must be asked again, at least 1. */
    fun room(session: Session): Int

    /**
     * Makes room: the N oldest residual tokens leave the cache.
     *
     * Under `reencode` they are folded into the memory if there is a gate, else forgotten; the
     * tokens after them are read again. Under `carry` the recall slots take the pairs that rank
     * highest, the window moves down, and with a gate the N are folded into the memory too.
     */
    fun compress(session: Session)

    companion object {
        private val byName = mapOf("reencode" to Reencode, "carry" to Carry)

        /**
         * The policy that a manifest names.
         *
         * @throws EdgeInfiniteException this version has none of that name.
         */
        fun named(name: String): Policy =
            byName[name] ?: throw EdgeInfiniteException(
                ErrorCode.ARTIFACT_NEWER,
                "the artifact's policy is '$name', this app knows ${byName.keys.joinToString()}; " +
                    "update the app",
            )
    }
}

/**
 * The paper's Algorithm 1: each segment follows the sinks, and the window is encoded again.
 *
 * While t < C the cache holds all of the text; after that, the S sinks and a residual of W <= r < W
 * + N tokens.
 */
private object Reencode : Policy {
    override fun isDue(session: Session): Boolean =
        session.residual.size >= session.engine.geometry.segmentLength && reachesCapacity(session)

    /**
     * Up to the segment's end if it will be compressed, else to the end of the text.
     *
     * The tokens after the segment must be encoded with the new memory, so reading them earlier
     * would do the work twice.
     */
    override fun room(session: Session): Int {
        if (!reachesCapacity(session)) return session.unread.size
        val geometry = session.engine.geometry
        return geometry.sinkLength + geometry.segmentLength - session.cached
    }

    /**
     * Lines 24-26: folds the N oldest into the memory; the tokens after them are read again.
     *
     * Their K, V in the cache were computed with the sinks, positions and memory that Algorithm 1
     * would compute them with, so no second pass over the segment is needed.
     */
    override fun compress(session: Session) {
        val geometry = session.engine.geometry
        if (session.engine.readsMemory) session.engine.compressMemory(session.state)
        session.unread.addFirst(session.residual.toIntArray(from = geometry.segmentLength))
        session.residual.clear()
        session.state.setLengths { geometry.sinkLength }
    }

    /** Whether the text known so far fills the cache: then a segment will be compressed. */
    private fun reachesCapacity(session: Session): Boolean =
        session.cached + session.unread.size >= session.engine.geometry.capacity
}

/**
 * The window slides: every token sees at least the W tokens before it, and nothing is read twice.
 *
 * While t <= C the cache holds all of the text; after that, the S sinks, G pairs that the retention
 * scorer kept, and a residual of W < r <= W + N tokens.
 */
private object Carry : Policy {
    override fun isDue(session: Session): Boolean = beforeCompression(session) == 0

    override fun room(session: Session): Int = minOf(beforeCompression(session), roomInWindows(session))

    /** Tokens to read until the residual is full. */
    private fun beforeCompression(session: Session): Int {
        val geometry = session.engine.geometry
        val sinksMissing = maxOf(0, geometry.sinkLength - session.cached)
        return sinksMissing + geometry.segmentLength + geometry.windowLength - session.residual.size
    }

    /**
     * The engine fills the recall slots and moves the window; nothing moves while everything fits.
     *
     * Even then it folds and scores the tokens that leave the window, if the state has the tensors.
     */
    override fun compress(session: Session) {
        val geometry = session.engine.geometry
        val state = session.state
        val fixed = geometry.sinkLength + geometry.windowLength
        val after = { layer: Int ->
            val used = state.lengthOf(layer)
            if (geometry.slides(layer)) {
                minOf(geometry.keptOf(layer), used)
            } else {
                fixed + minOf(geometry.slotsOf(layer), used - fixed)
            }
        }
        val notes = session.engine.readsMemory || state.keepsScores
        if (notes || (0 until state.layers).any { after(it) != state.lengthOf(it) }) {
            session.engine.compressMemory(state)
        }
        session.residual.removeFirst(geometry.segmentLength)
        state.setLengths(after)
    }
}

/**
 * Tokens that may be read until a layer with a sliding window is full.
 *
 * A layer that is full counts as if [makeRoom] had been called.
 */
private fun roomInWindows(session: Session): Int {
    val geometry = session.engine.geometry
    val segment = geometry.segmentLength
    return (0 until session.state.layers)
        .filter(geometry::slides)
        .minOfOrNull { layer ->
            val free = geometry.keptOf(layer) + segment - session.state.lengthOf(layer)
            if (free == 0) segment else free
        } ?: Int.MAX_VALUE
}

/** Drops from every full layer with a sliding window what no later token sees. */
internal fun makeRoom(session: Session) {
    val geometry = session.engine.geometry
    val state = session.state
    for (layer in (0 until state.layers).filter(geometry::slides)) {
        val kept = geometry.keptOf(layer)
        if (state.lengthOf(layer) == kept + geometry.segmentLength) keepNewest(state, layer, kept)
    }
}
