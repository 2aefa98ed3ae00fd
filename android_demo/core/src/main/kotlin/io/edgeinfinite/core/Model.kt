package io.edgeinfinite.core

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import java.io.File
import java.util.Collections

/**
 * An artifact with its weights in memory, and the thread that computes with them; made by [open].
 *
 * Nothing here blocks its caller: functions suspend while the engine's own thread works, so that they
 * may be called on the main thread. Java has `AsyncModel`.
 *
 * @property artifact its files; engines map them into memory.
 * @property tokenizer its tokenizer and chat template.
 * @property sampling how its authors recommend to sample, or what was measured to answer well where they
 *   don't say; see [conversationSampling]. Its conversations sample so unless they are told otherwise.
 */
public class Model private constructor(
    public val artifact: Artifact,
    public val tokenizer: TextTokenizer,
    public val sampling: SamplingOptions,
    private val engine: Engine,
    private val dispatcher: EngineDispatcher,
) {
    private val closing = Mutex()
    private val open: MutableSet<Conversation> = Collections.synchronizedSet(LinkedHashSet())
    private var isClosed = false

    /** The runtime that computes: `onnx`, `executorch`. */
    public val engineName: String get() = engine.name

    /** Of the cache that every conversation has. */
    public val geometry: Geometry get() = engine.geometry

    /** Whether old tokens are folded into a memory; see [Engine.readsMemory]. */
    public val readsMemory: Boolean get() = engine.readsMemory

    /**
     * A conversation that has read nothing.
     *
     * @param autosave saves running operations; null to save only by [Conversation.save].
     * @param undoSteps how many turns can be taken back; each costs the memory of one more state.
     * @throws EdgeInfiniteException there is no memory for its state, or the model is closed.
     */
    public suspend fun newConversation(
        autosave: Autosave? = null,
        undoSteps: Int = 0,
    ): Conversation =
        opened {
            Conversation(Session(engine), tokenizer, dispatcher, autosave, undoSteps, sampling = sampling)
        }

    /**
     * A saved conversation, exactly where it was saved.
     *
     * @param file written by [Conversation.save], or by the Python runtime.
     * @throws EdgeInfiniteException as [SessionFile.load], or the model is closed.
     */
    public suspend fun restoreConversation(
        file: File,
        autosave: Autosave? = null,
        undoSteps: Int = 0,
    ): Conversation =
        opened {
            Conversation.restore(engine, tokenizer, file, dispatcher, autosave, undoSteps, sampling = sampling)
        }

    /**
     * Stops and closes its conversations, then frees the weights and ends the thread. Waits for the
     * chunk or token that is being computed. Safe to call twice.
     *
     * Don't call it inside a collector of one of its flows, which would wait for itself.
     */
    public suspend fun close(): Unit =
        withContext(NonCancellable) {
            closing.withLock {
                if (isClosed) return@withContext
                isClosed = true
                for (conversation in synchronized(open) { open.toList() }) conversation.close()
                withContext(dispatcher) { engine.close() }
                dispatcher.close()
            }
        }

    /** A conversation that was asked for is made and kept even when the caller is cancelled meanwhile. */
    private suspend fun opened(make: suspend () -> Conversation): Conversation =
        closing.withLock {
            if (isClosed) {
                throw EdgeInfiniteException(ErrorCode.CLOSED, "the model ${artifact.name} is closed; open it again")
            }
            withContext(NonCancellable + dispatcher) {
                make().also { made ->
                    open += made
                    made.onClosed = { open -= made }
                }
            }
        }

    public companion object {
        /**
         * Opens an artifact: compares its files, reads its tokenizer, loads its weights.
         *
         * @param folder the artifact's.
         * @param engines those that are built in, such as `OnnxEngineFactory()`.
         * @param checkFiles compare sha256 of every file, about a second per 100 MB on a phone; not
         *   needed after an import, which has compared them.
         * @throws EdgeInfiniteException the artifact is missing, damaged or of a newer schema, or no
         *   engine takes it.
         */
        public suspend fun open(
            folder: File,
            engines: List<EngineFactory>,
            settings: EngineSettings = EngineSettings(),
            checkFiles: Boolean = true,
        ): Model {
            val artifact = Artifact.open(folder, checkFiles)
            val tokenizer = TextTokenizer.load(folder, artifact.manifest.backbone.vocabulary)
            val sampling = conversationSampling(folder)
            // A caller who is cancelled meanwhile never gets the model, so it is closed here.
            var model: Model? = null
            try {
                withContext(NonCancellable) {
                    val dispatcher = EngineDispatcher()
                    try {
                        val engine = withContext(dispatcher) { engines.open(artifact, settings) }
                        model = Model(artifact, tokenizer, sampling, engine, dispatcher)
                    } finally {
                        if (model == null) dispatcher.close()
                    }
                }
                currentCoroutineContext().ensureActive()
            } catch (cancelled: CancellationException) {
                model?.close()
                throw cancelled
            }
            return checkNotNull(model)
        }
    }
}
