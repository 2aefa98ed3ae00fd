package io.edgeinfinite.app

import android.content.Context
import com.tom_roush.pdfbox.android.PDFBoxResourceLoader
import io.edgeinfinite.app.data.ChatStore
import io.edgeinfinite.app.data.DeviceFacts
import io.edgeinfinite.app.data.Documents
import io.edgeinfinite.app.data.ModelHolder
import io.edgeinfinite.app.data.ProcessMemory
import io.edgeinfinite.app.data.SettingsStore
import io.edgeinfinite.app.ui.viewmodel.BenchmarkViewModel
import io.edgeinfinite.app.ui.viewmodel.ChatViewModel
import io.edgeinfinite.app.ui.viewmodel.HomeViewModel
import io.edgeinfinite.app.ui.viewmodel.RunningChat
import io.edgeinfinite.app.ui.viewmodel.SettingsViewModel
import io.edgeinfinite.core.ArtifactImporter
import io.edgeinfinite.core.EngineDispatcher
import io.edgeinfinite.onnx.android.SharedMemoryBuffers
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.flatMapLatest
import kotlinx.coroutines.flow.flowOf
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import java.io.File

/**
 * What the screens share, made once per process.
 *
 * View models live here too, so that they survive a rotation of the screen.
 *
 * @property appBytes measures the memory of the process; null where it isn't known.
 * @property releasePage the web page that has models to download; empty where there is none.
 */
class AppServices(
    context: Context,
    val appBytes: () -> Long? = ProcessMemory::pss,
    val releasePage: String = context.getString(R.string.release_page),
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
    val documents = Documents(context.contentResolver, context.cacheDir)
    val settings = SettingsStore(File(files, "settings.json"))
    val chats = ChatStore(File(files, "chats"))
    val models = ModelHolder(importer.root, builtInEngines(), SharedMemoryBuffers.orDirect())

    val home = HomeViewModel(this)
    private val device = DeviceFacts(context)

    val settingsScreen = SettingsViewModel(this, device::chip)
    val benchmark = BenchmarkViewModel(this, device)

    init {
        PDFBoxResourceLoader.init(context) // remembers where the assets are, no more
    }

    private val openChat = MutableStateFlow<ChatViewModel?>(null)
    private val open: ChatViewModel? get() = openChat.value

    /** What the open chat is doing, also while no screen shows it; null when none is open. */
    @OptIn(ExperimentalCoroutinesApi::class)
    val running: Flow<RunningChat?> =
        openChat.flatMapLatest { chat -> chat?.state?.map { RunningChat(chat.id, it.phase) } ?: flowOf(null) }

    /**
     * The view model of a chat. A chat that was open before it is interrupted and saved, and its memory freed.
     *
     * @param id the chat's, see [ChatStore]; null when it was deleted meanwhile.
     */
    fun chat(id: String): ChatViewModel? {
        open?.takeIf { it.id == id }?.let { return it }
        val record = chats.find(id) ?: return null
        open?.close()
        return ChatViewModel(this, record).also { openChat.value = it }
    }

    /** Frees what the open chat holds; it is loaded again when its screen comes back. */
    fun closeChat(id: String) {
        if (open?.id == id) {
            open?.close()
            openChat.value = null
        }
    }

    /** The same for whichever is open; its screen loads it again. */
    fun closeAnyChat() {
        open?.close()
    }

    /** The chat's screen is gone for good: frees what it holds, as soon as nothing of it runs. */
    fun leaveChat(id: String) {
        if (open?.id == id) open?.leave()
    }

    /** Ends what the open chat is doing. */
    fun stopRunning() {
        open?.stop()
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
