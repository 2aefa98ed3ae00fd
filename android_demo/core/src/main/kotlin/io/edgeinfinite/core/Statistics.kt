package io.edgeinfinite.core

/**
 * Where a session stands; what the memory view shows.
 *
 * @property cachedTokens sinks, recall slots in use and the newest tokens.
 * @property recalledTokens older tokens in the recall slots; 0 where the artifact has none.
 */
data class SessionFigures(
    val tokensRead: Long,
    val unreadTokens: Int,
    val cachedTokens: Int,
    val recalledTokens: Int,
    val compressions: Long,
    val stateBytes: Long,
) {
    companion object {
        /** The figures of a session between two calls. */
        fun of(session: Session) =
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
 * What one answer took. Times in seconds; null where not measured.
 *
 * @property tokenIds the answer's tokens, without the one that stopped it.
 * @property promptTokens tokens read for it (of an appended turn: the turn's own).
 * @property ttftS time to first token: reading the prompt and sampling once.
 * @property prefillTokensPerS prompt tokens by the time of reading them.
 * @property decodeTokensPerS tokens after the first one (the stopping one counts) by their time.
 * @property medianTokenS of the steps after the first token.
 * @property slowestTokenS the same steps; one that compresses is among them.
 * @property session where it stands after the answer.
 */
data class GenerationStatistics(
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

/** The middle one, or the mean of the middle two; null of none. */
internal fun medianOf(values: List<Double>): Double? {
    if (values.isEmpty()) return null
    val sorted = values.sorted()
    return (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2
}
