package io.edgeinfinite.app.ui.viewmodel

import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.core.Geometry
import io.edgeinfinite.core.SessionFigures
import io.edgeinfinite.core.Turn

/** One message as the screen shows it. */
sealed interface ChatItem {
    /** The user's question. */
    data class User(
        val text: String,
    ) : ChatItem

    /**
     * The model's answer so far.
     *
     * @property figures null while it is being written.
     * @property canGoOn whether it was cut, and can become longer.
     */
    data class Answer(
        val text: String,
        val figures: AnswerFigures?,
        val canGoOn: Boolean = false,
    ) : ChatItem

    /**
     * A text file.
     *
     * @property unread tokens left by a stopped reading.
     */
    data class File(
        val name: String,
        val isBeingRead: Boolean = false,
        val unread: Long = 0,
    ) : ChatItem
}

/** What the chat is doing. */
sealed interface Phase {
    /** The model is being opened. */
    data object Loading : Phase

    /** Waiting for the user. */
    data object Ready : Phase

    /**
     * A file or a long message is being read.
     *
     * @property name the file's, null for a message.
     * @property read tokens of it read so far, of [total].
     */
    data class Reading(
        val name: String?,
        val read: Long,
        val total: Long,
        val tokensPerS: Double?,
    ) : Phase

    /** An answer is being written. */
    data object Answering : Phase

    /** The model can't be opened. */
    data class Failed(
        val problem: Problem,
    ) : Phase
}

/**
 * Memory at one moment of a reading.
 *
 * @property appBytes null where the device doesn't tell.
 */
data class MemoryPoint(
    val tokensRead: Long,
    val appBytes: Long?,
    val stateBytes: Long,
)

/** What a chat does. */
data class RunningChat(
    val id: String,
    val phase: Phase,
)

/** A notice above the composer. */
sealed interface Notice {
    /** Something went wrong. */
    data class Failure(
        val problem: Problem,
    ) : Notice

    /** The saved state can't be used, so a new text begins. */
    data class HistoryLost(
        val reason: Problem,
    ) : Notice

    /**
     * A file doesn't say its encoding.
     *
     * @property sample words of it that would look wrong in another one.
     */
    data class Guessed(
        val encoding: String,
        val sample: String,
    ) : Notice

    /** The system was short of memory, so the operation was stopped. */
    data object LowMemory : Notice
}

/** What the screen does next, once; an operation asked for it. */
sealed interface NextStep {
    /** A question that was taken back, to be changed and asked again. */
    data class Edit(
        val question: String,
    ) : NextStep

    /** Another chat. */
    data class Open(
        val id: String,
    ) : NextStep

    /** Says that the file is written. */
    data object Saved : NextStep
}

/**
 * Everything that the chat's and the memory view's screens show.
 *
 * @property model folder name of the artifact.
 * @property title the chat's name, empty until something was read.
 * @property geometry of its state, null until the model was open once.
 * @property readsMemory whether it has a memory gate.
 * @property session where the text stands; null as [geometry].
 * @property tokensRead the same figure, known from disk before the model is open.
 * @property unread tokens that a stopped reading has left; of a long text an estimate.
 * @property appBytes memory of the whole process.
 * @property figures of the last answer.
 * @property system what the model is told before anything else, null for nothing.
 * @property undoable how many turns can be taken back.
 * @property samples whether answers are drawn by chance, so that another try can give another one.
 * @property next what the screen does next, null for nothing.
 */
data class ChatUiState(
    val model: String,
    val title: String = "",
    val backbone: String = "",
    val phase: Phase = Phase.Loading,
    val items: List<ChatItem> = emptyList(),
    val notice: Notice? = null,
    val geometry: Geometry? = null,
    val readsMemory: Boolean = true,
    val session: SessionFigures? = null,
    val tokensRead: Long = 0,
    val unread: Int = 0,
    val appBytes: Long? = null,
    val trace: List<MemoryPoint> = emptyList(),
    val figures: AnswerFigures? = null,
    val system: String? = null,
    val undoable: Int = 0,
    val samples: Boolean = false,
    val next: NextStep? = null,
) {
    /** Whether something runs that can be stopped. */
    val canStop: Boolean get() = phase is Phase.Reading || phase == Phase.Answering

    /** Whether the newest turn can be taken back. */
    val canTakeBack: Boolean get() = phase == Phase.Ready && undoable > 0

    /** Whether it is a question, which can be changed and asked again. */
    val canEdit: Boolean get() = canTakeBack && items.lastOrNull() is ChatItem.Answer

    /** Whether asking it again can give another answer. */
    val canTryAgain: Boolean get() = canEdit && samples

    /** Whether nothing is read yet, so that what comes first can still be changed. */
    val canSetSystem: Boolean get() = phase == Phase.Ready && items.isEmpty()

    companion object {
        /** What is known before the model is open. */
        fun of(record: ChatRecord) =
            ChatUiState(
                model = record.model,
                title = record.title,
                items = itemsOf(record.turns, record.figures, unread = 0),
                tokensRead = record.tokensRead,
                system = record.system,
                figures = record.figures.lastOrNull(),
            )

        /**
         * A history as messages.
         *
         * @param figures one per answer, in order; may be too few.
         * @param unread tokens left of the last file.
         * @param canGoOn whether the last answer was cut, and can become longer.
         */
        fun itemsOf(
            turns: List<Turn>,
            figures: List<AnswerFigures>,
            unread: Int,
            canGoOn: Boolean = false,
        ): List<ChatItem> {
            val each = figures.iterator()
            val lastFile = turns.indexOfLast { it.kind == Turn.Kind.DOCUMENT }
            return turns.mapIndexed { index, turn ->
                when (turn.kind) {
                    Turn.Kind.USER -> ChatItem.User(turn.text)
                    Turn.Kind.ASSISTANT ->
                        ChatItem.Answer(
                            turn.text,
                            if (each.hasNext()) each.next() else AnswerFigures(),
                            canGoOn && index == turns.lastIndex,
                        )
                    Turn.Kind.DOCUMENT ->
                        ChatItem.File(turn.text, unread = if (index == lastFile) unread.toLong() else 0)
                }
            }
        }
    }
}
