package io.edgeinfinite.app.ui.viewmodel

import android.net.Uri
import io.edgeinfinite.app.AppServices
import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.app.data.TextDocument
import io.edgeinfinite.app.telling
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext

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
    /** The chat's, as in [ChatRecord]. */
    val id: String = record.id

    private val kept = KeptRecord(services, record)
    private val display = ChatDisplay(ChatUiState.of(record), MemoryTrace(services.io, services.appBytes))
    private val work = ChatWork(services, display, kept)

    /** What the screens show. */
    val state: StateFlow<ChatUiState> get() = display.state

    @Volatile
    private var open: OpenChat? = null

    /** Whether no screen shows it any more. */
    private var isLeft = false

    /** Operations that run or wait. */
    private var operations = 0
    private val isBusy get() = operations > 0

    /**
     * The screen came to the front: opens the model, again if the settings changed, and resumes a
     * reading that was cut off. Does nothing while something runs.
     */
    fun resume() {
        isLeft = false
        if (!state.value.canStop) operate { if (it.conversation.isInterrupted) work.readOn(it) }
    }

    /** Asks; the answer streams into [state]. */
    fun send(question: String) {
        if (question.isBlank() || state.value.canStop) return
        val text = question.trim()
        operate { work.answer(it, text) }
    }

    /** Goes on with the newest answer, if it was cut. */
    fun goOn() = operate(work::goOn)

    /** Reads a document; [stop] ends that after the chunk that is being read. */
    fun attach(uri: Uri) =
        operate { chat ->
            work.attach(chat) {
                withContext(services.io) { services.documents.readText(uri, services.chats.longText(id)) }
            }
        }

    /** Reads a text that another app gave. */
    fun attachText(
        name: String,
        text: String,
    ) = operate { chat -> work.attach(chat) { TextDocument(name, text) } }

    /** Takes the newest question with its answer back, or the newest file. */
    fun takeBack() = operate { work.undo(it) }

    /** Asks the newest question once more; what the model said is forgotten. */
    fun tryAgain() =
        operate { chat ->
            work.questionAgain(chat)?.let { work.answer(chat, it) }
        }

    /** Takes the newest question back and gives it to the screen to be changed, see [NextStep.Edit]. */
    fun edit() =
        operate { chat ->
            val question = work.undo(chat).firstOrNull { it.kind == Turn.Kind.USER }?.text
            display.change { it.copy(next = question?.let(NextStep::Edit)) }
        }

    /** A second chat that goes on from here by itself, see [NextStep.Open]. */
    fun fork() =
        operate { chat ->
            val copy = withContext(services.io) { services.chats.copy(kept.record) }
            chat.conversation.save(services.chats.sessionFile(copy.id))
            if (chat.conversation.needsSource) {
                withContext(services.io) { services.chats.longText(id).copyTo(services.chats.longText(copy.id)) }
            }
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
                kept.setSystem(text.trim().ifEmpty { null })
                display.change { it.copy(system = kept.record.system) }
            }
            resume()
        }
    }

    /** The screen did what [ChatUiState.next] says. */
    fun nextIsDone() = display.change { it.copy(next = null) }

    /** Resumes a stopped reading. */
    fun readOn() = operate(work::readOn)

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
                    telling(::fail) { block(opened()) }
                } finally {
                    withContext(NonCancellable) { settle() }
                }
            }
            operations -= 1
            if (isLeft && !isBusy) services.closeChat(id)
        }
    }

    private fun fail(problem: Problem) =
        display.change {
            if (open == null) {
                it.copy(phase = Phase.Failed(problem))
            } else {
                it.copy(notice = Notice.Failure(problem))
            }
        }

    private suspend fun opened(): OpenChat {
        open?.let { if (it.agreesWith(services.settings.settings.value)) return it else release() }
        display.change { it.copy(phase = Phase.Loading) }
        val chat = OpenChat.open(services, kept.record, ::isSaved)
        open = chat
        kept.isOpened(chat)
        val manifest = chat.model.artifact.manifest
        display.change {
            it.copy(
                backbone = manifest.backbone.name,
                geometry = chat.model.engine.geometry,
                readsMemory = chat.model.engine.readsMemory,
                notice = chat.lost?.let(Notice::HistoryLost) ?: it.notice,
            )
        }
        return chat
    }

    private suspend fun release() {
        val chat = open ?: return
        open = null
        withContext(services.computing) { chat.conversation.close() }
    }

    /** After every operation, however it ended: the history as the conversation has it, on disk. */
    private suspend fun settle() {
        val chat = open ?: return
        val unsaved = kept.settle(chat)
        if (!chat.conversation.needsSource) withContext(services.io) { services.chats.longText(id).delete() }
        val figures = kept.record.figures
        val samples = chat.samplerFor(services.settings.settings.value.sampling).options.temperature > 0
        display.settle(chat.figures) {
            val conversation = chat.conversation
            it.copy(
                title = kept.record.title,
                items =
                ChatUiState.itemsOf(conversation.turns, figures, conversation.unreadTokens, conversation.canGoOn),
                unread = chat.conversation.unreadTokens,
                figures = figures.lastOrNull(),
                undoable = chat.conversation.undoable,
                samples = samples,
                notice = unsaved?.let(Notice::Failure) ?: it.notice,
            )
        }
    }

    private fun isSaved(turns: List<Turn>) {
        open?.let { kept.isSavedDuring(turns, it.figures.tokensRead) }
    }
}
