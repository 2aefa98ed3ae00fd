package io.edgeinfinite.app

import android.content.Context
import io.edgeinfinite.app.data.ChatStore
import io.edgeinfinite.app.data.Documents
import io.edgeinfinite.app.data.ModelHolder
import io.edgeinfinite.app.data.SettingsStore
import io.edgeinfinite.app.ui.viewmodel.ChatViewModel
import io.edgeinfinite.app.ui.viewmodel.HomeViewModel
import io.edgeinfinite.app.ui.viewmodel.SettingsViewModel
import io.edgeinfinite.core.ArtifactImporter
import io.edgeinfinite.core.EngineDispatcher
import io.edgeinfinite.onnx.android.SharedMemoryBuffers
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import java.io.File

/**
 * What the screens share, made once per process.
 *
 * View models live here too, so that they survive a rotation of the screen.
 */
class AppServices(
    context: Context,
) {
    /** For work that outlives a screen; on the main thread. */
    val scope: CoroutineScope = MainScope()

    /** For files and checksums. */
    val io: CoroutineDispatcher = Dispatchers.IO

    /** For engines: one operation at a time. */
    val computing = EngineDispatcher()

    /** Held by whatever uses or frees the open model. */
    val oneAtATime = Mutex()

    private val files: File = context.filesDir

    val importer = ArtifactImporter(File(files, "models"))
    val documents = Documents(context.contentResolver)
    val settings = SettingsStore(File(files, "settings.json"))
    val chats = ChatStore(File(files, "chats"))
    val models = ModelHolder(importer.root, builtInEngines(), SharedMemoryBuffers.orDirect())

    val home = HomeViewModel(this)
    val settingsScreen = SettingsViewModel(this)

    private var open: ChatViewModel? = null

    /**
     * The view model of a chat; a chat that was open before it is saved and its memory freed.
     *
     * @param id the chat's, see [ChatStore]; null when it was deleted meanwhile.
     */
    fun chat(id: String): ChatViewModel? {
        open?.takeIf { it.id == id }?.let { return it }
        val record = chats.find(id) ?: return null
        open?.close()
        return ChatViewModel(this, record).also { open = it }
    }

    /** Frees what the open chat holds; it is loaded again when its screen comes back. */
    fun closeChat(id: String) {
        if (open?.id == id) {
            open?.close()
            open = null
        }
    }

    /** The app is hidden, so the system may end the process at any time. */
    fun onHidden() {
        open?.onHidden()
    }

    /** The device is short of memory. */
    fun onLowMemory() {
        open?.onLowMemory()
        scope.launch { oneAtATime.withLock { withContext(computing) { models.close() } } }
    }
}
