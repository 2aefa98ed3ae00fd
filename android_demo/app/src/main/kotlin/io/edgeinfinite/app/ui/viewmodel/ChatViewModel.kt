package io.edgeinfinite.app.ui.viewmodel

import android.net.Uri
import io.edgeinfinite.app.AppServices
import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.SessionFigures
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.coroutines.yield

/**
 * A chat: reads, answers, and saves itself after every operation.
 *
 * Use it on the main thread. Operations run one after the other, also those of a chat that is
 * closing, because only one model fits into memory.
 *
 * @param record as it is on disk.
 */
class ChatViewModel(
    private val services: AppServices,
    record: ChatRecord,
) {
    /** Changed between operations only. */
    @Volatile
    private var record: ChatRecord = record

    /** The chat's, as in [ChatRecord]. */
    val id: String = record.id

    private val mutable = MutableStateFlow(ChatUiState.of(record))

    /** What the screens show. */
    val state: StateFlow<ChatUiState> = mutable.asStateFlow()

    private val trace = MemoryTrace(services.io)

    @Volatile
    private var open: OpenChat? = null

    /** What the session's file holds. */
    private var saved: SessionFigures? = null

    /**
     * The screen came to the front: opens the model, again if the settings changed, and resumes a
     * reading that was cut off. Does nothing while something runs.
     */
    fun resume() {
        if (!mutable.value.canStop) operate { if (it.conversation.isInterrupted) readOn(it) }
    }

    /** Asks; the answer streams into [state]. */
    fun send(question: String) {
        if (question.isBlank() || mutable.value.canStop) return
        val text = question.trim()
        operate { chat ->
            show(Phase.Answering, ChatItem.User(text), ChatItem.Answer("", null))
            ask(chat, text)
        }
    }

    /** Reads a text file; [stop] ends that after the chunk that is being read. */
    fun attach(uri: Uri) =
        operate { chat ->
            val document = withContext(services.io) { services.documents.readText(uri) }
            show(Phase.Reading(document.name, 0, 0, null), ChatItem.File(document.name, isBeingRead = true))
            read(document.name, chat.conversation.attach(document.name, document.text))
        }

    /** Resumes a stopped reading. */
    fun readOn() = operate(::readOn)

    /** Stops the running operation; what was read or written so far stays. */
    fun stop() {
        open?.conversation?.stop()
    }

    /** Drops the rest of a stopped reading. */
    fun dropUnread() = operate { it.conversation.dropUnread() }

    /** Hides the notice. */
    fun dismissNotice() = mutable.update { it.copy(notice = null) }

    /** The app is hidden and the system may end the process: saves the running operation. */
    fun onHidden() {
        open?.conversation?.saveSoon()
    }

    /** Stops, says why, and frees the state; the next operation or [resume] loads it again. */
    fun onLowMemory() {
        if (mutable.value.canStop) mutable.update { it.copy(notice = Notice.LowMemory) }
        open?.conversation?.interrupt()
        close()
    }

    /** Stops, and frees the state; it is on disk already. */
    fun close() {
        stop()
        services.scope.launch { services.oneAtATime.withLock { release() } }
    }

    private fun operate(block: suspend (OpenChat) -> Unit): Job =
        services.scope.launch {
            services.oneAtATime.withLock {
                try {
                    block(opened())
                } catch (error: EdgeInfiniteException) {
                    fail(error.message.orEmpty())
                } catch (_: OutOfMemoryError) {
                    fail("there is no memory left for this; close other apps or shorten the text")
                } finally {
                    withContext(NonCancellable) { settle() }
                }
            }
        }

    private fun fail(message: String) =
        mutable.update {
            if (open == null) {
                it.copy(phase = Phase.Failed(message))
            } else {
                it.copy(notice = Notice.Problem(message))
            }
        }

    private suspend fun opened(): OpenChat {
        open?.let { if (it.agreesWith(services.settings.settings.value)) return it else release() }
        mutable.update { it.copy(phase = Phase.Loading) }
        val chat = OpenChat.open(services, record, ::keepRecord)
        open = chat
        saved = chat.figures
        val manifest = chat.model.artifact.manifest
        mutable.update {
            it.copy(
                backbone = manifest.backbone.name,
                geometry = chat.model.engine.geometry,
                readsMemory = chat.model.engine.readsMemory,
                notice = chat.lost?.let(Notice::HistoryLost) ?: it.notice,
            )
        }
        if (chat.lost != null) record = record.copy(turns = emptyList(), figures = emptyList(), tokensRead = 0)
        return chat
    }

    private suspend fun release() {
        val chat = open ?: return
        open = null
        withContext(services.computing) { chat.conversation.close() }
    }

    private suspend fun readOn(chat: OpenChat) {
        val turns = chat.conversation.turns
        // A question's own text may have been stopped too; that has no name.
        val name = turns.lastOrNull()?.takeIf { it.kind == Turn.Kind.DOCUMENT }?.text
        val items = ChatUiState.itemsOf(turns, record.figures, unread = 0)
        val total = chat.figures.unreadTokens.toLong()
        mutable.update {
            it.copy(
                phase = Phase.Reading(name, 0, total, null),
                items = if (name == null) items else items.dropLast(1) + ChatItem.File(name, isBeingRead = true),
                notice = null,
            )
        }
        read(name, chat.conversation.readOn())
    }

    private suspend fun read(
        name: String?,
        events: Flow<GenerationEvent.Reading>,
    ) {
        val start = System.nanoTime()
        events.collect { event ->
            showReading(name, event, start)
            yield()
        }
    }

    private suspend fun ask(
        chat: OpenChat,
        question: String,
    ) {
        val settings = services.settings.settings.value
        val start = System.nanoTime()
        val text = StringBuilder()
        var figures = AnswerFigures(end = AnswerFigures.End.STOPPED)
        try {
            chat.conversation
                .ask(question, chat.samplerFor(settings.sampling), settings.maxNewTokens)
                .collect { event ->
                    when (event) {
                        is GenerationEvent.Reading -> showReading(null, event, start)
                        is GenerationEvent.Piece -> {
                            text.append(event.text)
                            showAnswer(text.toString())
                            yield() // a burst of pieces must not hold up the main thread
                        }
                        is GenerationEvent.Finished -> figures = event.figures()
                    }
                }
        } finally {
            // A question that was refused at once is not a turn and has no figures.
            if (answersOf(chat) > record.figures.size) record = record.copy(figures = record.figures + figures)
        }
    }

    /** After every operation, however it ended: the history as the conversation has it, on disk. */
    private suspend fun settle() {
        val chat = open ?: return
        val session = chat.figures
        val turns = chat.conversation.turns
        val isNew = turns != record.turns || session != saved
        record = record.copy(turns = turns, tokensRead = session.tokensRead, title = titleOf(turns))
        val unsaved = if (isNew) save(chat) else null
        saved = session
        val bytes = trace.measure(session, isLast = true)
        mutable.update {
            it.copy(
                phase = Phase.Ready,
                items = ChatUiState.itemsOf(turns, record.figures, session.unreadTokens),
                session = session,
                tokensRead = session.tokensRead,
                figures = record.figures.lastOrNull(),
                appBytes = bytes ?: it.appBytes,
                trace = trace.course,
                notice = unsaved?.let(Notice::Problem) ?: it.notice,
            )
        }
    }

    /** @return what went wrong, null when it is on disk. */
    private suspend fun save(chat: OpenChat): String? =
        try {
            record = record.copy(updated = System.currentTimeMillis())
            withContext(services.io) { services.chats.save(record) }
            chat.conversation.save(services.chats.sessionFile(id))
            null
        } catch (error: EdgeInfiniteException) {
            error.message
        }

    private fun show(
        phase: Phase,
        vararg items: ChatItem,
    ) = mutable.update { it.copy(phase = phase, items = it.items + items, notice = null) }

    private fun showAnswer(text: String) =
        mutable.update {
            it.copy(phase = Phase.Answering, items = it.items.dropLast(1) + ChatItem.Answer(text, null))
        }

    private suspend fun showReading(
        name: String?,
        event: GenerationEvent.Reading,
        start: Long,
    ) {
        val seconds = (System.nanoTime() - start) / NANOS
        val reading = Phase.Reading(name, event.read, event.total, event.read / seconds)
        val isShortMessage = name == null && event.read == event.total
        show(event.session, if (isShortMessage) Phase.Answering else reading)
    }

    private suspend fun show(
        session: SessionFigures,
        phase: Phase,
    ) {
        val bytes = trace.measure(session, isLast = false)
        mutable.update {
            it.copy(
                phase = phase,
                session = session,
                tokensRead = session.tokensRead,
                appBytes = bytes ?: it.appBytes,
                trace = if (bytes == null) it.trace else trace.course,
            )
        }
    }

    private fun answersOf(chat: OpenChat) = chat.conversation.turns.count { it.kind == Turn.Kind.ASSISTANT }

    /** A running operation was saved; on the engine's thread, so before [settle] says how it ended. */
    private fun keepRecord(turns: List<Turn>) {
        val tokensRead = open?.figures?.tokensRead ?: return
        services.chats.save(record.during(turns, tokensRead))
    }

    private companion object {
        const val NANOS = 1e9
    }
}
