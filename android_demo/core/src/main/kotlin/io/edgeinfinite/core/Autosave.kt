package io.edgeinfinite.core

import java.io.File

/**
 * Keeps a running operation of a [Conversation] on disk, so that a killed process loses little of it.
 *
 * Saves come between two chunks or tokens: when one is asked for, and at intervals that grow with
 * what the last save took, so that saving never takes more than a small share of the time.
 *
 * @property file replaced by every save.
 * @param pauseS least seconds from one save to the next, unless asked for.
 * @param clock seconds from any start.
 * @param onSaved called after each save with the history that was saved, on the engine's thread and
 *   between two steps, so it may read the session.
 */
class Autosave(
    val file: File,
    private val pauseS: Double = PAUSE_S,
    private val clock: () -> Double = { System.nanoTime() / 1e9 },
    private val onSaved: (List<Turn>) -> Unit = {},
) {
    @Volatile
    private var isRequested = false
    private var dueAt = Double.POSITIVE_INFINITY

    /** Saves after the chunk or token that is being computed; from any thread. */
    fun request() {
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
            isSaved = false // a full storage is no reason to stop reading; the save at the end says so
        }
        val end = clock()
        dueAt = end + maxOf(pauseS, (end - start) * TIMES_ITS_COST)
        if (isSaved) onSaved(turns)
    }

    companion object {
        /** Least seconds between two saves. */
        const val PAUSE_S = 15.0

        /** A save is followed by this many times what it took. */
        private const val TIMES_ITS_COST = 20
    }
}
