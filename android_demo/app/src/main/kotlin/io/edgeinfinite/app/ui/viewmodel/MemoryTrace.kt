package io.edgeinfinite.app.ui.viewmodel

import io.edgeinfinite.app.data.ProcessMemory
import io.edgeinfinite.core.SessionFigures
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.withContext

/**
 * A chat's memory over time, thinned out so that it stays small for any length of text.
 *
 * @param io where the process's memory is measured, which takes milliseconds.
 */
class MemoryTrace(
    private val io: CoroutineDispatcher,
) {
    private val points = ArrayList<MemoryPoint>()
    private var measuredAt = 0L

    /** A copy of the course. */
    val course: List<MemoryPoint> get() = points.toList()

    /**
     * Measures, unless it did so a moment ago.
     *
     * @param isLast measures in any case.
     * @return the process's memory in bytes, null when not measured.
     */
    suspend fun measure(
        session: SessionFigures,
        isLast: Boolean,
    ): Long? {
        val now = System.nanoTime()
        if (!isLast && points.isNotEmpty() && now - measuredAt < PAUSE_NS) return null
        measuredAt = now
        val bytes = withContext(io) { ProcessMemory.pss() } ?: return null
        if (points.lastOrNull()?.tokensRead == session.tokensRead) points.removeLastOrNullCompat()
        points += MemoryPoint(session.tokensRead, bytes, session.stateBytes)
        if (points.size > MOST) thinOut()
        return bytes
    }

    /** Drops every second point but the last. */
    private fun thinOut() {
        val kept = points.filterIndexed { index, _ -> index % 2 == 0 || index == points.lastIndex }
        points.clear()
        points += kept
    }

    /** `removeLast` compiles to a method that Android has only from API 35 on. */
    private fun ArrayList<MemoryPoint>.removeLastOrNullCompat() {
        if (isNotEmpty()) removeAt(lastIndex)
    }

    private companion object {
        const val MOST = 240
        const val PAUSE_NS = 200_000_000L
    }
}
