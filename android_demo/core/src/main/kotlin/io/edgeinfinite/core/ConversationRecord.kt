package io.edgeinfinite.core

import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json

/**
 * What a conversation said and read so far, what it has still to read, and how a session file holds that
 * beside the state.
 *
 * It is changed on the engine's thread; [turns] and [pending] may be read on any.
 */
internal class ConversationRecord {
    private val history = ArrayList<Turn>()

    /** What Python noted in the file that the conversation comes from. */
    private var notes = SessionNotes()

    /** A document was read, and the question about it is still to come. */
    var turnIsOpen = false

    /** What a stopped reading has left in its source; null for nothing. */
    @Volatile
    var pending: Pending? = null

    /** What was said and read so far; a copy. */
    val turns: List<Turn> get() = synchronized(history) { history.toList() }

    fun add(turn: Turn): Unit = synchronized(history) { history += turn }

    /** Forgets all but the first turns; returns those that are forgotten, oldest first. */
    fun cutTo(count: Int): List<Turn> =
        synchronized(history) {
            val newer = history.subList(count, history.size)
            newer.toList().also { newer.clear() }
        }

    /**
     * A session file's metadata.
     *
     * @param turns the history that the file shall hold, which may be ahead of [ConversationRecord.turns].
     * @param isReading whether a reading is cut off by saving, so that it should go on.
     */
    fun toMetadata(
        turns: List<Turn>,
        isReading: Boolean,
    ): Map<String, String> =
        mapOf(
            HISTORY_KEY to json.encodeToString(History(turns, isReading, pending)),
            SessionNotes.KEY to notes.copy(messageIsOpen = turnIsOpen).encode(),
        )

    /**
     * Becomes what a session file says; from Python's file, at most the document that it read.
     *
     * @param hasUnread whether the session has tokens to read.
     * @return whether a reading was cut off.
     * @throws SerializationException the metadata isn't what [toMetadata] writes.
     */
    fun restore(
        metadata: Map<String, String>,
        hasUnread: Boolean,
    ): Boolean {
        notes = SessionNotes.decode(metadata[SessionNotes.KEY])
        turnIsOpen = notes.messageIsOpen
        val text = metadata[HISTORY_KEY]
        if (text == null) {
            notes.document?.let { add(Turn(Turn.Kind.DOCUMENT, it.title.ifEmpty { it.name })) }
            return turnIsOpen && hasUnread
        }
        val saved = json.decodeFromString<History>(text)
        saved.turns.forEach(::add)
        pending = saved.pending
        return saved.isReading && (hasUnread || pending != null)
    }

    @Serializable
    private data class History(
        val turns: List<Turn>,
        val isReading: Boolean = false,
        val pending: Pending? = null,
    )

    private companion object {
        const val HISTORY_KEY = "conversation"
        val json = Json { ignoreUnknownKeys = true }
    }
}
