package io.edgeinfinite.app.ui.viewmodel

import io.edgeinfinite.app.AppServices
import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.SessionFigures
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.withContext

/**
 * A chat's entry and its session's file, kept as the conversation is.
 *
 * @param first as it is on disk.
 */
internal class KeptRecord(
    private val services: AppServices,
    first: ChatRecord,
) {
    /** Changed between operations only. */
    @Volatile
    var record: ChatRecord = first
        private set

    /** What the session's file holds. */
    private var saved: SessionFigures? = null

    /** The chat was opened; what it lost is gone from its history, too. */
    fun isOpened(chat: OpenChat) {
        saved = chat.figures
        if (chat.lost != null) record = record.copy(turns = emptyList(), figures = emptyList(), tokensRead = 0)
    }

    /** What the model is told first; to be called while no state is open. */
    suspend fun setSystem(text: String?) {
        record = record.copy(system = text)
        withContext(services.io) { services.chats.save(record) }
    }

    /** A question that was refused at once is not a turn and has no figures. */
    fun isAnswered(
        chat: OpenChat,
        figures: AnswerFigures,
    ) {
        if (answersOf(chat) > record.figures.size) record = record.copy(figures = record.figures + figures)
    }

    /** The newest answer goes on, and counts as stopped until it says how it ended. */
    fun goesOn() = endsLast { it.copy(end = AnswerFigures.End.STOPPED) }

    /** The newest answer has become longer. */
    fun hasGoneOn(more: AnswerFigures) =
        endsLast { more.copy(ttftS = it.ttftS, prefillTokensPerS = it.prefillTokensPerS) }

    private fun endsLast(change: (AnswerFigures) -> AnswerFigures) {
        val figures = record.figures
        record = record.copy(figures = figures.dropLast(1) + figures.takeLast(1).map(change))
    }

    /** Turns were taken back, with the figures of their answers. */
    fun isTakenBack(chat: OpenChat) {
        record = record.copy(figures = record.figures.take(answersOf(chat)))
    }

    /**
     * After an operation: the history as the conversation has it, on disk if it changed.
     *
     * @return what went wrong, null when it is on disk.
     */
    suspend fun settle(chat: OpenChat): Problem? {
        val session = chat.figures
        val turns = chat.conversation.turns
        val isNew = turns != record.turns || session != saved
        record = record.copy(turns = turns, tokensRead = session.tokensRead, title = titleOf(turns))
        val problem = if (isNew) save(chat) else null
        saved = session
        return problem
    }

    private suspend fun save(chat: OpenChat): Problem? =
        try {
            record = record.copy(updated = System.currentTimeMillis())
            withContext(services.io) { services.chats.save(record) }
            chat.conversation.save(services.chats.sessionFile(record.id))
            null
        } catch (error: EdgeInfiniteException) {
            Problem.of(error)
        }

    /** A running operation was saved; on the engine's thread, so before [settle] says how it ended. */
    fun isSavedDuring(
        turns: List<Turn>,
        tokensRead: Long,
    ) = services.chats.save(record.during(turns, tokensRead))

    private fun answersOf(chat: OpenChat) = chat.conversation.turns.count { it.kind == Turn.Kind.ASSISTANT }
}
