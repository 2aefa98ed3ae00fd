package io.edgeinfinite.app.ui.viewmodel

import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.core.FinishReason
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Turn

private const val TITLE = 80
private val SUFFIX = Regex("\\.(txt|md|markdown|html?|xhtml|epub|pdf)$", RegexOption.IGNORE_CASE)
private const val LAST_ASCII = 127
private const val BEFORE = 20
private const val SAMPLE = 60

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
            FinishReason.REPETITION -> AnswerFigures.End.REPEATED
        },
    )

/** A chat's name: the book's that it began to read first, else the start of what was said first. */
internal fun titleOf(turns: List<Turn>): String =
    titleOf(turns.find { it.kind == Turn.Kind.DOCUMENT }?.text, turns.firstOrNull()?.text)

/** The same of what the screen shows already. */
internal fun titleShown(items: List<ChatItem>): String =
    titleOf(
        items.firstNotNullOfOrNull { (it as? ChatItem.File)?.name },
        items.firstNotNullOfOrNull { (it as? ChatItem.User)?.text },
    )

private fun titleOf(
    book: String?,
    message: String?,
): String = (book?.let(::withoutSuffix) ?: message.orEmpty()).lineSequence().first().take(TITLE)

/** A document's name without what only says its kind. */
internal fun withoutSuffix(name: String): String = name.replace(SUFFIX, "").ifBlank { name }

/** Some words around the first letter that isn't ASCII, from which a person sees whether a text is read right. */
internal fun tellingWords(text: String): String {
    val at = text.indexOfFirst { it.code > LAST_ASCII }
    if (at < 0) return ""
    val line = text.substring(text.lastIndexOf('\n', at) + 1).lineSequence().first()
    val from = maxOf(0, at - text.lastIndexOf('\n', at) - 1 - BEFORE)
    return line.drop(from).take(SAMPLE).trim()
}

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
