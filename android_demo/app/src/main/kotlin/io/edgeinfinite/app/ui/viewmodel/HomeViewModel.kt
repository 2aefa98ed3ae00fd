package io.edgeinfinite.app.ui.viewmodel

import android.net.Uri
import io.edgeinfinite.app.AppServices
import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.app.telling
import io.edgeinfinite.core.Artifact
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ImportProgress
import io.edgeinfinite.core.ReadingCancelled
import io.edgeinfinite.core.SessionFile
import io.edgeinfinite.core.StoredArtifact
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import java.io.IOException

/**
 * A running import.
 *
 * @property total bytes in all, null where the source doesn't tell.
 */
data class ImportState(
    val name: String,
    val copied: Long = 0,
    val total: Long? = null,
)

/** How the last import ended, until the next one begins. */
sealed interface ImportEnd {
    /** It is in the list. */
    data class Done(
        val name: String,
    ) : ImportEnd

    /** A reading that was a file is a chat. */
    data class Opened(
        val chat: String,
    ) : ImportEnd

    /** The person stopped it. */
    data object Stopped : ImportEnd

    /** It can't be used. */
    data class Refused(
        val problem: Problem,
    ) : ImportEnd
}

/** Everything that the first screen shows. */
data class HomeUiState(
    val models: List<StoredArtifact>? = null,
    val chats: List<ChatRecord> = emptyList(),
    val importing: ImportState? = null,
    val end: ImportEnd? = null,
)

/** Models and chats on this device, and the import of another model. Use it on the main thread. */
class HomeViewModel(
    private val services: AppServices,
) {
    private val mutable = MutableStateFlow(HomeUiState())

    /** What the screen shows. */
    val state: StateFlow<HomeUiState> = mutable.asStateFlow()

    @Volatile
    private var isCancelled = false

    /** Reads the lists again. */
    fun refresh() {
        services.scope.launch { load() }
    }

    /** Imports a zip archive that the person picked. */
    fun importZip(uri: Uri) =
        import({ services.documents.nameOf(uri).removeSuffix(".zip") }) { name, progress ->
            services.importer.importZip(name, services.documents.open(uri), progress) { isCancelled }
        }

    /** Imports a folder that the person picked. */
    fun importFolder(tree: Uri) =
        import({ services.documents.folderName(tree) }) { name, progress ->
            services.importer.importFiles(name, services.documents.filesOf(tree), progress) { isCancelled }
        }

    /** Makes a chat of a reading that was saved as a file, here or by Python. */
    fun openReading(uri: Uri) {
        if (mutable.value.importing != null) return
        services.scope.launch {
            lateinit var end: ImportEnd
            telling({ end = ImportEnd.Refused(it) }) {
                end = ImportEnd.Opened(withContext(services.io) { chatOf(uri) })
            }
            mutable.update { it.copy(end = end) }
        }
    }

    private suspend fun chatOf(uri: Uri): String {
        val models = services.importer.list().filter { it.manifest != null }
        val chat = services.chats.create("")
        val file = services.chats.sessionFile(chat.id)
        try {
            services.documents.copy(uri, file)
            val model =
                try {
                    models.find { SessionFile.fits(file, checkNotNull(it.manifest)) }
                } catch (error: EdgeInfiniteException) {
                    val name = services.documents.nameOf(uri)
                    throw ProblemException(Problem(R.string.problem_no_reading, listOf(name)), error)
                }
            val name = model?.folder?.name ?: throw ProblemException(R.string.problem_no_model)
            services.chats.save(chat.copy(model = name))
        } catch (error: ProblemException) {
            services.chats.delete(chat.id)
            throw error
        }
        return chat.id
    }

    /** Ends the import; nothing of it is kept. */
    fun cancelImport() {
        isCancelled = true
    }

    /** The user was told how the import ended. */
    fun endIsSeen() = mutable.update { it.copy(end = null) }

    /** Names of the models that can be opened. */
    suspend fun usableModels(): List<String> =
        withContext(services.io) { services.importer.list().filter { it.manifest != null }.map { it.folder.name } }

    /** A new, empty chat. */
    fun newChat(model: String): ChatRecord = services.chats.create(model)

    /** Removes a model and the states of its chats, and frees it if it is open. */
    fun deleteModel(name: String) {
        services.scope.launch {
            val chats = withContext(services.io) { services.chats.list() }
            chats.filter { it.model == name }.forEach { services.closeChat(it.id) }
            // After the closing, which waits for what still runs and saves it.
            services.oneAtATime.withLock {
                withContext(services.computing) { services.models.close() }
                withContext(services.io) {
                    services.importer.delete(name)
                    services.chats.deleteStates(name)
                }
            }
            load()
        }
    }

    /** Removes a chat. */
    fun deleteChat(id: String) {
        services.closeChat(id)
        services.scope.launch {
            // After the closing, which waits for what still runs and saves it.
            services.oneAtATime.withLock { withContext(services.io) { services.chats.delete(id) } }
            load()
        }
    }

    private suspend fun load() {
        val (models, chats) =
            withContext(services.io) { services.importer.list() to services.chats.list() }
        // A chat without a message isn't listed.
        val used = chats.filter { it.turns.isNotEmpty() }
        mutable.update { it.copy(models = models, chats = used) }
    }

    private fun import(
        nameOf: () -> String,
        copy: suspend (String, ImportProgress) -> Artifact,
    ) {
        if (mutable.value.importing != null) return
        isCancelled = false
        mutable.update { it.copy(importing = ImportState(""), end = null) }
        services.scope.launch {
            lateinit var end: ImportEnd
            telling({ end = ImportEnd.Refused(it) }) {
                end =
                    try {
                        ImportEnd.Done(withContext(services.io) { copyNamed(nameOf(), copy) }.name)
                    } catch (_: ReadingCancelled) {
                        ImportEnd.Stopped
                    } catch (error: IOException) {
                        ImportEnd.Refused(Problem(R.string.error_unreadable_source, detail = error.message))
                    }
            }
            mutable.update { it.copy(importing = null, end = end) }
            load()
        }
    }

    private suspend fun copyNamed(
        name: String,
        copy: suspend (String, ImportProgress) -> Artifact,
    ): Artifact {
        mutable.update { it.copy(importing = ImportState(name)) }
        return copy(name) { copied, total ->
            mutable.update { it.copy(importing = ImportState(name, copied, total)) }
        }
    }
}
