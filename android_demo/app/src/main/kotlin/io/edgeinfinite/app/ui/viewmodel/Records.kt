package io.edgeinfinite.app.ui.viewmodel

import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.core.FinishReason
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Turn

private const val TITLE = 80

/** What an answer took, as it is kept. */
internal fun GenerationEvent.Finished.figures() =
    AnswerFigures(
        ttftS = statistics.ttftS,
        prefillTokensPerS = statistics.prefillTokensPerS,
        decodeTokensPerS = statistics.decodeTokensPerS,
        slowestTokenS = statistics.slowestTokenS,
        end =
        when (reason) {
            FinishReason.STOP -> null
            FinishReason.LENGTH -> AnswerFigures.End.CUT
            FinishReason.CANCELLED -> AnswerFigures.End.STOPPED
        },
    )

/** A chat's line in the list: the start of what was said first. */
internal fun titleOf(turns: List<Turn>): String =
    turns
        .firstOrNull()
        ?.text
        .orEmpty()
        .lineSequence()
        .firstOrNull()
        .orEmpty()
        .take(TITLE)

/** The entry as it is to be found if the process ends now: an answer that isn't complete was stopped. */
internal fun ChatRecord.during(
    turns: List<Turn>,
    tokensRead: Long,
): ChatRecord {
    val unfinished = turns.count { it.kind == Turn.Kind.ASSISTANT } - figures.size
    return copy(
        updated = System.currentTimeMillis(),
        title = titleOf(turns),
        tokensRead = tokensRead,
        turns = turns,
        figures = figures + List(maxOf(0, unfinished)) { AnswerFigures(end = AnswerFigures.End.STOPPED) },
    )
}
