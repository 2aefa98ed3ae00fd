package io.edgeinfinite.onnx.android

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.EngineFactory
import io.edgeinfinite.core.EngineSettings
import io.edgeinfinite.core.Model
import io.edgeinfinite.core.async.AsyncModel
import io.edgeinfinite.onnx.OnnxEngineFactory
import java.io.File
import java.util.concurrent.CompletableFuture
import java.util.concurrent.Executor

/** Opens ONNX artifacts on Android, with their states outside the Java heap. */
public object OnnxModels {
    private val engines: List<EngineFactory> = listOf(OnnxEngineFactory())

    /**
     * Opens an artifact; see [Model.open].
     *
     * @param folder the artifact's, in the app's own files.
     * @param threads CPU threads, null for onnxruntime's choice.
     * @param checkFiles compare sha256 of every file; not needed after an import.
     * @throws EdgeInfiniteException as [Model.open].
     */
    public suspend fun open(
        folder: File,
        threads: Int? = null,
        checkFiles: Boolean = true,
    ): Model = Model.open(folder, engines, settings(threads), checkFiles)

    /**
     * The same for callers without coroutines, such as Java.
     *
     * @param callbacks where listeners are called, such as `context.getMainExecutor()`.
     */
    @JvmStatic
    @JvmOverloads
    public fun openAsync(
        folder: File,
        callbacks: Executor,
        threads: Int? = null,
        checkFiles: Boolean = true,
    ): CompletableFuture<AsyncModel> = AsyncModel.open(folder, engines, callbacks, settings(threads), checkFiles)

    private fun settings(threads: Int?) = EngineSettings(threads, SharedMemoryBuffers.orDirect())
}
