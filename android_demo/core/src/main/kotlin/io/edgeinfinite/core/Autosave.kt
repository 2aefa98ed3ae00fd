package io.edgeinfinite.core

import java.io.File

/**
 * Saves a running operation of a [Conversation], so that a killed process loses little.
 *
 * It saves between two chunks or tokens, on request and at intervals. The intervals grow with the
 * duration of the last save, so that saving takes only a small share of the time.
 *
 * @property file each save replaces it.
 * @param pauseS fewest seconds between two saves, except on request.
 * @param clock seconds from any start.
 * @param onSaved called after each save with the history that was saved, on the engine's thread and
 *   between two steps, so it may read the session.
 */
public class Autosave
@JvmOverloads
constructor(
    public val file: File,
    private val pauseS: Double = PAUSE_S,
    private val clock: () -> Double = { System.nanoTime() / 1e9 },
    private val onSaved: (List<Turn>) -> Unit = {},
) {
    @Volatile
    private var isRequested = false
    private var dueAt = Double.POSITIVE_INFINITY

    /** Saves after the chunk or token that is being computed; from any thread. */
    public fun request() {
        isRequested = true
    }

    /** An operation begins; what came before it is on disk or was nothing. */
    internal fun begin() {
        isRequested = false
        dueAt = clock() + pauseS
    }

    /** Saves if it is time to: [write] puts the session and [turns] into the file. */
    internal fun saveIfDue(
        turns: List<Turn>,
        write: (File) -> Unit,
    ) {
        val start = clock()
        if (!isRequested && start < dueAt) return
        isRequested = false
        var isSaved = true
        try {
            write(file)
        } catch (_: EdgeInfiniteException) {
            isSaved = false // reading continues with a full storage; the last save reports it
        }
        val end = clock()
        dueAt = end + maxOf(pauseS, (end - start) * TIMES_ITS_COST)
        if (isSaved) onSaved(turns)
    }

    public companion object {
        /** Least seconds between two saves. */
        public const val PAUSE_S: Double = 15.0

        /** A save is followed by this many times what it took. */
        private const val TIMES_ITS_COST = 20
    }
}
