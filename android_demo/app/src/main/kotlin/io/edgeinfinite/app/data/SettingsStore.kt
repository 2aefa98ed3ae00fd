package io.edgeinfinite.app.data

import io.edgeinfinite.core.Accelerator
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.SamplingOptions
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.launch
import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import java.io.File
import java.io.IOException

/**
 * What a person can set.
 *
 * @property sampling how tokens are chosen; its seed is null unless fixed. Null as a whole until a
 *   person has chosen anything: then each model samples as its authors recommend.
 * @property maxNewTokens the longest answer.
 * @property stop an answer ends before the first of these texts.
 * @property threads CPU threads, null for the runtime's own choice.
 * @property npu whether models that were compiled for this device's NPU run there.
 * @property background whether a text is read on, with a notification, when the app is left.
 */
@Serializable
data class AppSettings(
    val sampling: SamplingOptions? = null,
    val maxNewTokens: Int = 256,
    val stop: List<String> = emptyList(),
    val threads: Int? = null,
    val npu: Boolean = false,
    val background: Boolean = false,
) {
    /** How models are run. */
    val howToRun: HowToRun get() = HowToRun(threads, if (npu) Accelerator.NPU else Accelerator.CPU)
}

/** What an engine is opened with, see [io.edgeinfinite.core.EngineSettings]. */
data class HowToRun(
    val threads: Int?,
    val accelerator: Accelerator,
)

/**
 * The settings, in a small file.
 *
 * @param file written whole at every change; a damaged one reads as the defaults.
 * @param writer writes it, one change after the other, so that the newest is the last.
 */
class SettingsStore(
    private val file: File,
    writer: CoroutineDispatcher = Dispatchers.IO.limitedParallelism(1),
) {
    private val writing = CoroutineScope(writer)
    private val mutable = MutableStateFlow(read())

    /** The settings in force. */
    val settings: StateFlow<AppSettings> = mutable.asStateFlow()

    /** Takes new settings at once, and writes them soon, on another thread. */
    fun update(change: (AppSettings) -> AppSettings) {
        val changed = change(mutable.value)
        if (changed == mutable.value) return
        mutable.value = changed
        writing.launch {
            try {
                file.replaceText(json.encodeToString(changed))
            } catch (_: IOException) {
                // A full storage: the change holds for this process.
            }
        }
    }

    private fun read(): AppSettings =
        try {
            json.decodeFromString(file.readText())
        } catch (_: IOException) {
            AppSettings()
        } catch (_: SerializationException) {
            AppSettings()
        } catch (_: EdgeInfiniteException) { // a value out of range
            AppSettings()
        }

    private companion object {
        val json = Json { ignoreUnknownKeys = true }
    }
}
