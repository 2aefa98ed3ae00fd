package io.edgeinfinite.app.ui.viewmodel

import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.SessionFigures
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.update

/** What a chat's screens show, kept up to date while something runs. */
internal class ChatDisplay(
    first: ChatUiState,
    private val trace: MemoryTrace,
) {
    private val mutable = MutableStateFlow(first)

    /** What they show now. */
    val state: StateFlow<ChatUiState> = mutable.asStateFlow()

    fun change(how: (ChatUiState) -> ChatUiState) = mutable.update(how)

    /** Something begins, with messages of its own. */
    fun begin(
        phase: Phase,
        vararg items: ChatItem,
    ) = change {
        val all = it.items + items
        it.copy(phase = phase, items = all, title = titleShown(all), notice = null)
    }

    /** The last answer goes on, and its text so far is shown without what it took. */
    fun beginAgain() =
        change { state ->
            val last = state.items.last() as ChatItem.Answer
            val items = state.items.dropLast(1) + ChatItem.Answer(last.text, null)
            state.copy(phase = Phase.Answering, items = items, notice = null)
        }

    /** The last answer's text so far. */
    fun answer(text: String) =
        change { it.copy(phase = Phase.Answering, items = it.items.dropLast(1) + ChatItem.Answer(text, null)) }

    /**
     * A chunk was read.
     *
     * @param name the file's, null for a message.
     * @param start when the reading began, as [System.nanoTime].
     */
    suspend fun reading(
        name: String?,
        event: GenerationEvent.Reading,
        start: Long,
    ) {
        val seconds = (System.nanoTime() - start) / NANOS
        val reading = Phase.Reading(name, event.read, event.total, event.read / seconds)
        val isShortMessage = name == null && event.read == event.total
        val isMeasured = trace.measure(event.session, isLast = false)
        change {
            it.copy(
                phase = if (isShortMessage) Phase.Answering else reading,
                session = event.session,
                tokensRead = event.session.tokensRead,
                appBytes = if (isMeasured) trace.course.last().appBytes else it.appBytes,
                trace = if (isMeasured) trace.course else it.trace,
            )
        }
    }

    /**
     * Nothing runs any more.
     *
     * @param how adds what only the chat knows.
     */
    suspend fun settle(
        session: SessionFigures,
        how: (ChatUiState) -> ChatUiState,
    ) {
        trace.measure(session, isLast = true)
        change {
            how(it).copy(
                phase = Phase.Ready,
                session = session,
                tokensRead = session.tokensRead,
                appBytes = trace.course.lastOrNull()?.appBytes,
                trace = trace.course,
            )
        }
    }

    private companion object {
        const val NANOS = 1e9
    }
}
