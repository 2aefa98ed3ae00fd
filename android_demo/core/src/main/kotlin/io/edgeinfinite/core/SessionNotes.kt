package io.edgeinfinite.core

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json

/**
 * What a session file says for the next turn, beside the state itself: as Python's
 * `session/notes.py`, so that a book read on a desktop can be asked about on a phone, and back.
 *
 * @property model name of the checkpoint; "" if it isn't known.
 * @property messageIsOpen what was read last is the beginning of a user's message.
 * @property document the one that the session began with, if Python read it.
 * @property system the system prompt that a user of Python gave; null for the template's own or none.
 */
@Serializable
internal data class SessionNotes(
    val model: String = "",
    @SerialName("message_is_open") val messageIsOpen: Boolean = false,
    val document: ReadDocument? = null,
    val system: String? = null,
) {
    /** @property raw it was read without the chat template. */
    @Serializable
    data class ReadDocument(
        val name: String,
        val title: String,
        val sha256: String,
        val tokens: Long,
        val raw: Boolean,
    )

    fun encode(): String = json.encodeToString(this)

    companion object {
        /** The notes' name in a session file's metadata. */
        const val KEY = "edgeinfinite.notes"
        private val json = Json {
            ignoreUnknownKeys = true
            encodeDefaults = true
        }

        /** @throws kotlinx.serialization.SerializationException they aren't notes. */
        fun decode(text: String?): SessionNotes = if (text == null) SessionNotes() else json.decodeFromString(text)
    }
}
