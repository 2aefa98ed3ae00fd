package io.edgeinfinite.app.ui.viewmodel

import io.edgeinfinite.app.AppServices
import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.data.TextDocument
import io.edgeinfinite.app.documents.LongText
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.yield

/** What a chat does with its conversation, shown while it runs. One operation at a time. */
internal class ChatWork(
    private val services: AppServices,
    private val display: ChatDisplay,
    private val kept: KeptRecord,
) {
    /** Reads a document, after the rest of a long one that was stopped. */
    suspend fun attach(
        chat: OpenChat,
        document: suspend () -> TextDocument,
    ) {
        if (isAllRead(chat)) read(chat, document())
    }

    private suspend fun read(
        chat: OpenChat,
        document: TextDocument,
    ) {
        val name = document.name
        display.begin(Phase.Reading(name, 0, 0, null), ChatItem.File(name, isBeingRead = true))
        document.guess?.let { encoding ->
            display.change { it.copy(notice = Notice.Guessed(encoding, tellingWords(document.text))) }
        }
        document.left?.let { left -> display.change { it.copy(notice = Notice.Failure(left)) } }
        val long = document.long
        follow(name, chat.conversation.run { if (long == null) attach(name, document.text) else attach(name, long) })
    }

    /** Reads the rest of a long text, if there is one; false if that was stopped, too. */
    private suspend fun isAllRead(chat: OpenChat): Boolean {
        if (chat.conversation.needsSource) readOn(chat)
        return !chat.conversation.needsSource
    }

    /** Resumes a stopped reading. */
    suspend fun readOn(chat: OpenChat) {
        val turns = chat.conversation.turns
        // A question's own text may have been stopped too; that has no name.
        val name = turns.lastOrNull()?.takeIf { it.kind == Turn.Kind.DOCUMENT }?.text
        val items = ChatUiState.itemsOf(turns, kept.record.figures, unread = 0)
        val total = chat.conversation.unreadTokens.toLong()
        display.change {
            it.copy(
                phase = Phase.Reading(name, 0, total, null),
                items = if (name == null) items else items.dropLast(1) + ChatItem.File(name, isBeingRead = true),
                notice = null,
            )
        }
        follow(name, chat.conversation.readOn(LongText(services.chats.longText(kept.record.id))))
    }

    private suspend fun follow(
        name: String?,
        events: Flow<GenerationEvent.Reading>,
    ) {
        val start = System.nanoTime()
        events.collect { event ->
            display.reading(name, event, start)
            yield()
        }
    }

    /** Takes the newest turn back; gives it. */
    suspend fun undo(chat: OpenChat): List<Turn> {
        val taken = chat.conversation.undo()
        kept.isTakenBack(chat)
        return taken
    }

    /** Takes the newest turn back, to try it once more: gives its question, null where there is none. */
    suspend fun questionAgain(chat: OpenChat): String? {
        val question = undo(chat).firstOrNull { it.kind == Turn.Kind.USER }?.text ?: return null
        val turns = chat.conversation.turns
        display.change {
            it.copy(items = ChatUiState.itemsOf(turns, kept.record.figures, chat.conversation.unreadTokens))
        }
        return question
    }

    /** Asks, and shows the answer as it is written. */
    suspend fun answer(
        chat: OpenChat,
        question: String,
    ) {
        if (!isAllRead(chat)) return
        display.begin(Phase.Answering, ChatItem.User(question), ChatItem.Answer("", null))
        val settings = services.settings.settings.value
        val sampler = chat.samplerFor(settings.sampling)
        val events = chat.conversation.ask(question, sampler, settings.maxNewTokens, settings.stop)
        show(events, begun = "") { kept.isAnswered(chat, it) }
    }

    /** Goes on with the newest answer, which was cut. */
    suspend fun goOn(chat: OpenChat) {
        if (!chat.conversation.canGoOn) return
        display.beginAgain()
        kept.goesOn()
        val settings = services.settings.settings.value
        val sampler = chat.samplerFor(settings.sampling)
        val begun = chat.conversation.turns.last().text
        show(chat.conversation.goOn(sampler, settings.maxNewTokens, settings.stop), begun, kept::hasGoneOn)
    }

    /**
     * Shows an answer as it is written.
     *
     * @param begun what was written of it before.
     * @param end is told how it ended, whatever happens.
     */
    private suspend fun show(
        events: Flow<GenerationEvent>,
        begun: String,
        end: (AnswerFigures) -> Unit,
    ) {
        val start = System.nanoTime()
        val text = StringBuilder(begun)
        var figures = AnswerFigures(end = AnswerFigures.End.STOPPED)
        try {
            events.collect { event ->
                when (event) {
                    is GenerationEvent.Reading -> display.reading(null, event, start)
                    is GenerationEvent.Piece -> {
                        text.append(event.text)
                        display.answer(text.toString())
                        yield() // a burst of pieces must not hold up the main thread
                    }
                    is GenerationEvent.Finished -> figures = event.figures()
                }
            }
        } finally {
            end(figures)
        }
    }
}
