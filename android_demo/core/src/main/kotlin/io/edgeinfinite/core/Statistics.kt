package io.edgeinfinite.core

/**
 * The counters of a session, as the memory view shows them.
 *
 * @property cachedTokens sinks, recall slots in use and the newest tokens.
 * @property recalledTokens older tokens in the recall slots; 0 if the artifact has none.
 */
public data class SessionFigures(
    val tokensRead: Long,
    val unreadTokens: Int,
    val cachedTokens: Int,
    val recalledTokens: Int,
    val compressions: Long,
    val stateBytes: Long,
) {
    public companion object {
        /** The figures of a session between two calls. */
        @EngineThreadApi
        @JvmStatic
        public fun of(session: Session): SessionFigures =
            SessionFigures(
                tokensRead = session.tokensRead,
                unreadTokens = session.unread.size,
                cachedTokens = session.cached,
                recalledTokens = session.recalled,
                compressions = session.compressions,
                stateBytes = session.stateBytes,
            )
    }
}

/**
 * The speed of one answer. Times are in seconds; null if not measured.
 *
 * @property tokenIds the answer's tokens, without the one that stopped it.
 * @property promptTokens tokens read for it (of an appended turn: the turn's own).
 * @property ttftS time to first token: reading the prompt and sampling once.
 * @property prefillTokensPerS prompt tokens per second of prefill.
 * @property decodeTokensPerS tokens after the first one (the stopping one counts) by their time.
 * @property medianTokenS median time of the steps after the first token.
 * @property slowestTokenS longest of these steps, usually one that compresses.
 * @property session the session's counters after the answer.
 */
public data class GenerationStatistics(
    val tokenIds: List<Int>,
    val promptTokens: Long,
    val ttftS: Double?,
    val prefillTokensPerS: Double?,
    val decodeTokensPerS: Double?,
    val medianTokenS: Double?,
    val slowestTokenS: Double?,
    val session: SessionFigures,
    val engine: String,
) {
    /** Length of the answer. */
    val newTokens: Int get() = tokenIds.size
}

/** The median; null if there are no values. */
internal fun medianOf(values: List<Double>): Double? {
    if (values.isEmpty()) return null
    val sorted = values.sorted()
    return (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2
}
