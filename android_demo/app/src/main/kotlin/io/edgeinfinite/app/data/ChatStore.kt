package io.edgeinfinite.app.data

import io.edgeinfinite.core.Turn
import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import java.io.File
import java.io.IOException
import java.util.UUID

/**
 * What one answer took, as far as the screen shows it.
 *
 * @property end why the answer ended early, null when it did not.
 */
@Serializable
data class AnswerFigures(
    val ttftS: Double? = null,
    val prefillTokensPerS: Double? = null,
    val decodeTokensPerS: Double? = null,
    val slowestTokenS: Double? = null,
    val end: End? = null,
) {
    /** How an answer can end before the model ends it. */
    @Serializable
    enum class End { STOPPED, CUT, REPEATED }
}

/**
 * An entry of the list of chats, and what its screen shows before the model is open.
 *
 * @property id names its folder.
 * @property model folder name of the artifact it belongs to.
 * @property updated milliseconds since the epoch.
 * @property turns a copy of the history that the session file holds.
 * @property figures one per answer among [turns], in order.
 * @property system what the model is told before anything else, null for nothing.
 */
@Serializable
data class ChatRecord(
    val id: String,
    val model: String,
    val updated: Long,
    val title: String = "",
    val tokensRead: Long = 0,
    val turns: List<Turn> = emptyList(),
    val figures: List<AnswerFigures> = emptyList(),
    val system: String? = null,
)

/**
 * Chats on disk: a folder each, with `chat.json` and the session's own file.
 *
 * @param root made when missing.
 */
class ChatStore(
    private val root: File,
) {
    /** All chats, the newest first; a damaged entry is left out. */
    fun list(): List<ChatRecord> =
        root.list().orEmpty().mapNotNull(::find).sortedByDescending { it.updated }

    /** One chat, null when there is none of this id. */
    fun find(id: String): ChatRecord? =
        try {
            json.decodeFromString<ChatRecord>(recordFile(id).readText())
        } catch (_: IOException) {
            null
        } catch (_: SerializationException) {
            null
        }

    /** A new, empty chat; it is on disk when this returns. */
    fun create(model: String): ChatRecord =
        ChatRecord(UUID.randomUUID().toString(), model, System.currentTimeMillis()).also(::save)

    /** A second entry of the same words; its state is for the caller to save. */
    fun copy(record: ChatRecord): ChatRecord =
        record.copy(id = UUID.randomUUID().toString(), updated = System.currentTimeMillis()).also(::save)

    /** Replaces a chat's entry; a full storage leaves the old one. */
    fun save(record: ChatRecord) {
        try {
            recordFile(record.id).replaceText(json.encodeToString(record))
        } catch (_: IOException) {
            // The session's own file says so to the person when it can't be written either.
        }
    }

    /** Removes a chat and its state. */
    fun delete(id: String) {
        folder(id).deleteRecursively()
    }

    /** Removes the states of all chats with a model, and what was left of unfinished ones; their text stays. */
    fun deleteStates(model: String) {
        for (chat in list().filter { it.model == model }) {
            val others = folder(chat.id).listFiles().orEmpty().filter { it.name != RECORD }
            others.forEach { it.deleteRecursively() }
        }
    }

    /** Where the state of a chat is kept. */
    fun sessionFile(id: String): File = File(folder(id), "session.safetensors")

    /** Where a long text is kept until it is read to its end. */
    fun longText(id: String): File = File(folder(id), "text.txt")

    /** Where a state stands on its way out of the app. */
    fun exported(id: String): File = File(folder(id), "exported.safetensors")

    private fun recordFile(id: String) = File(folder(id), RECORD)

    private fun folder(id: String): File {
        require(id.isNotEmpty() && id.all { it.isLetterOrDigit() || it == '-' }) { "no chat's id: $id" }
        return File(root, id)
    }

    private companion object {
        const val RECORD = "chat.json"
        val json = Json { ignoreUnknownKeys = true }
    }
}
