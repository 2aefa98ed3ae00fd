package io.edgeinfinite.app.ui.viewmodel

import io.edgeinfinite.core.SessionFigures
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.withContext

/**
 * A chat's memory over time, thinned out so that it stays small for any length of text.
 *
 * @param io where the process's memory is measured, which takes milliseconds.
 * @param appBytes measures it; null where it isn't known.
 */
class MemoryTrace(
    private val io: CoroutineDispatcher,
    private val appBytes: () -> Long?,
) {
    private val points = ArrayList<MemoryPoint>()
    private var measuredAt = 0L

    /** A copy of the course. */
    val course: List<MemoryPoint> get() = points.toList()

    /**
     * Measures, unless it did so a moment ago.
     *
     * @param isLast measures in any case.
     * @return whether it did.
     */
    suspend fun measure(
        session: SessionFigures,
        isLast: Boolean,
    ): Boolean {
        val now = System.nanoTime()
        if (!isLast && points.isNotEmpty() && now - measuredAt < PAUSE_NS) return false
        measuredAt = now
        val bytes = withContext(io) { appBytes() }
        if (points.lastOrNull()?.tokensRead == session.tokensRead) points.removeLastOrNullCompat()
        points += MemoryPoint(session.tokensRead, bytes, session.stateBytes)
        if (points.size > MOST) thinOut()
        return true
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
