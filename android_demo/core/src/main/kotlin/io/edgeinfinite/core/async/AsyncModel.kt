package io.edgeinfinite.core.async

import io.edgeinfinite.core.Autosave
import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.EngineFactory
import io.edgeinfinite.core.EngineSettings
import io.edgeinfinite.core.Model
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.future.future
import java.io.File
import java.util.concurrent.CompletableFuture
import java.util.concurrent.Executor

/**
 * A [Model] for callers without coroutines, such as Java: what suspends there gives a future here.
 *
 * @property model the same, for Kotlin.
 * @param callbacks where listeners are called and futures complete, such as Android's
 *   `context.getMainExecutor()`.
 */
public class AsyncModel(
    public val model: Model,
    callbacks: Executor,
) {
    private val scope = CoroutineScope(SupervisorJob() + callbacks.asCoroutineDispatcher())

    /** See [Model.newConversation]. */
    @JvmOverloads
    public fun newConversation(
        autosave: Autosave? = null,
        undoSteps: Int = 0,
    ): CompletableFuture<AsyncConversation> = scope.future { model.newConversation(autosave, undoSteps).async() }

    /** See [Model.restoreConversation]. */
    @JvmOverloads
    public fun restoreConversation(
        file: File,
        autosave: Autosave? = null,
        undoSteps: Int = 0,
    ): CompletableFuture<AsyncConversation> =
        scope.future { model.restoreConversation(file, autosave, undoSteps).async() }

    /** See [Model.close]. */
    public fun close(): CompletableFuture<Void?> = scope.future { finished(model.close()) }

    private fun Conversation.async() = AsyncConversation(this, scope)

    public companion object {
        /** Opens an artifact; see [Model.open]. */
        @JvmStatic
        @JvmOverloads
        public fun open(
            folder: File,
            engines: List<EngineFactory>,
            callbacks: Executor,
            settings: EngineSettings = EngineSettings(),
            checkFiles: Boolean = true,
        ): CompletableFuture<AsyncModel> =
            CoroutineScope(callbacks.asCoroutineDispatcher()).future {
                AsyncModel(Model.open(folder, engines, settings, checkFiles), callbacks)
            }
    }
}

/** Java's way to say that there is no result. */
@Suppress("UNUSED_PARAMETER")
internal fun finished(nothing: Unit): Void? = null
