package io.edgeinfinite.app.ui.viewmodel

import android.net.Uri
import io.edgeinfinite.app.AppServices
import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.app.data.TextDocument
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.SessionFigures
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.StateFlow
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

    private val display = ChatDisplay(ChatUiState.of(record), MemoryTrace(services.io, services.appBytes))

    /** What the screens show. */
    val state: StateFlow<ChatUiState> get() = display.state

    @Volatile
    private var open: OpenChat? = null

    /** Whether no screen shows it any more. */
    private var isLeft = false

    /** Operations that run or wait. */
    private var operations = 0
    private val isBusy get() = operations > 0

    /** What the session's file holds. */
    private var saved: SessionFigures? = null

    /**
     * The screen came to the front: opens the model, again if the settings changed, and resumes a
     * reading that was cut off. Does nothing while something runs.
     */
    fun resume() {
        isLeft = false
        if (!state.value.canStop) operate { if (it.conversation.isInterrupted) readOn(it) }
    }

    /** Asks; the answer streams into [state]. */
    fun send(question: String) {
        if (question.isBlank() || state.value.canStop) return
        val text = question.trim()
        operate { chat ->
            answer(chat, text)
        }
    }

    /** Reads a document; [stop] ends that after the chunk that is being read. */
    fun attach(uri: Uri) =
        operate { chat ->
            val document = withContext(services.io) { services.documents.readText(uri) }
            read(chat, document)
        }

    /** Reads a text that another app gave. */
    fun attachText(
        name: String,
        text: String,
    ) = operate { read(it, TextDocument(name, text)) }

    private suspend fun read(
        chat: OpenChat,
        document: TextDocument,
    ) {
        val name = document.name
        display.begin(Phase.Reading(name, 0, 0, null), ChatItem.File(name, isBeingRead = true))
        document.guess?.let { encoding ->
            display.change { it.copy(notice = Notice.Guessed(encoding, telling(document.text))) }
        }
        read(name, chat.conversation.attach(name, document.text))
    }

    /** Takes the newest question with its answer back, or the newest file. */
    fun takeBack() =
        operate { chat ->
            undo(chat)
        }

    /** Asks the newest question once more; what the model said is forgotten. */
    fun tryAgain() =
        operate { chat ->
            val question = undo(chat).firstOrNull { it.kind == Turn.Kind.USER }?.text ?: return@operate
            val items = ChatUiState.itemsOf(chat.conversation.turns, record.figures, chat.figures.unreadTokens)
            display.change { it.copy(items = items) }
            answer(chat, question)
        }

    /** Takes the newest question back and gives it to the screen to be changed, see [NextStep.Edit]. */
    fun edit() =
        operate { chat ->
            val question = undo(chat).firstOrNull { it.kind == Turn.Kind.USER }?.text
            display.change { it.copy(next = question?.let(NextStep::Edit)) }
        }

    /** A second chat that goes on from here by itself, see [NextStep.Open]. */
    fun fork() =
        operate { chat ->
            val copy = withContext(services.io) { services.chats.copy(record) }
            chat.conversation.save(services.chats.sessionFile(copy.id))
            display.change { it.copy(next = NextStep.Open(copy.id)) }
        }

    /** Writes what was read and said, with the state, to a file that the person chose. */
    fun saveTo(uri: Uri) =
        operate { chat ->
            val file = services.chats.exported(id)
            try {
                chat.conversation.save(file)
                withContext(services.io) { services.documents.write(file, uri) }
                display.change { it.copy(next = NextStep.Saved) }
            } finally {
                file.delete()
            }
        }

    /** What the model is told before anything else; only while nothing is read. Blank for nothing. */
    fun setSystem(text: String) {
        if (!state.value.canSetSystem) return
        services.scope.launch {
            services.oneAtATime.withLock {
                release()
                record = record.copy(system = text.trim().ifEmpty { null })
                withContext(services.io) { services.chats.save(record) }
                display.change { it.copy(system = record.system) }
            }
            resume()
        }
    }

    /** The screen did what [ChatUiState.next] says. */
    fun nextIsDone() = display.change { it.copy(next = null) }

    /** Resumes a stopped reading. */
    fun readOn() = operate(::readOn)

    /** Stops the running operation; what was read or written so far stays. */
    fun stop() {
        open?.conversation?.stop()
    }

    /** Drops the rest of a stopped reading. */
    fun dropUnread() = operate { it.conversation.dropUnread() }

    /** Hides the notice. */
    fun dismissNotice() = display.change { it.copy(notice = null) }

    /** The app is hidden and the system may end the process: saves the running operation. */
    fun onHidden() {
        open?.conversation?.saveSoon()
    }

    /** Stops, says why, and frees the state; the next operation or [resume] loads it again. */
    fun onLowMemory() {
        if (state.value.canStop) display.change { it.copy(notice = Notice.LowMemory) }
        open?.conversation?.interrupt()
        close()
    }

    /**
     * The screen is gone for good. What runs goes on, and then the state is freed; nothing is freed if
     * the screen comes back before.
     */
    fun leave() {
        isLeft = true
        if (!isBusy) services.closeChat(id)
    }

    /** Interrupts what runs, which [resume] continues, and frees the state; it is on disk already. */
    fun close() {
        open?.conversation?.interrupt()
        services.scope.launch { services.oneAtATime.withLock { release() } }
    }

    private fun operate(block: suspend (OpenChat) -> Unit): Job {
        operations += 1
        return services.scope.launch {
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
            operations -= 1
            if (isLeft && !isBusy) services.closeChat(id)
        }
    }

    private fun fail(message: String) =
        display.change {
            if (open == null) {
                it.copy(phase = Phase.Failed(message))
            } else {
                it.copy(notice = Notice.Problem(message))
            }
        }

    private suspend fun opened(): OpenChat {
        open?.let { if (it.agreesWith(services.settings.settings.value)) return it else release() }
        display.change { it.copy(phase = Phase.Loading) }
        val chat = OpenChat.open(services, record, ::keepRecord)
        open = chat
        saved = chat.figures
        val manifest = chat.model.artifact.manifest
        display.change {
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
        display.change {
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
            display.reading(name, event, start)
            yield()
        }
    }

    private suspend fun undo(chat: OpenChat): List<Turn> {
        val taken = chat.conversation.undo()
        record = record.copy(figures = record.figures.take(answersOf(chat)))
        return taken
    }

    private suspend fun answer(
        chat: OpenChat,
        question: String,
    ) {
        display.begin(Phase.Answering, ChatItem.User(question), ChatItem.Answer("", null))
        ask(chat, question)
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
                .ask(question, chat.samplerFor(settings.sampling), settings.maxNewTokens, settings.stop)
                .collect { event ->
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
        val samples = chat.samplerFor(services.settings.settings.value.sampling).options.temperature > 0
        display.settle(session) {
            it.copy(
                items = ChatUiState.itemsOf(turns, record.figures, session.unreadTokens),
                figures = record.figures.lastOrNull(),
                undoable = chat.conversation.undoable,
                samples = samples,
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

    private fun answersOf(chat: OpenChat) = chat.conversation.turns.count { it.kind == Turn.Kind.ASSISTANT }

    /** A running operation was saved; on the engine's thread, so before [settle] says how it ended. */
    private fun keepRecord(turns: List<Turn>) {
        val tokensRead = open?.figures?.tokensRead ?: return
        services.chats.save(record.during(turns, tokensRead))
    }
}
