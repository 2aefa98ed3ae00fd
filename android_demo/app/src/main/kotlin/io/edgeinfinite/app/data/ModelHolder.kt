package io.edgeinfinite.app.data

import io.edgeinfinite.core.Artifact
import io.edgeinfinite.core.BufferAllocator
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.EngineFactory
import io.edgeinfinite.core.EngineSettings
import io.edgeinfinite.core.TextTokenizer
import io.edgeinfinite.core.open
import java.io.File

/** An artifact with its engine and tokenizer, ready for sessions. */
class LoadedModel(
    val artifact: Artifact,
    val engine: Engine,
    val tokenizer: TextTokenizer,
)

/**
 * Keeps one model open: its weights are by far the largest thing in the process.
 *
 * Not thread-safe: use it on one dispatcher of one thread.
 *
 * @param root where the artifacts are.
 * @param engines those built in.
 * @param buffers where states get their memory.
 */
class ModelHolder(
    private val root: File,
    private val engines: List<EngineFactory>,
    private val buffers: BufferAllocator,
) {
    private var loaded: LoadedModel? = null
    private var threads: Int? = null

    /**
     * Opens a model, or hands out the open one; another one that was open is closed.
     *
     * Sessions of the model that was open before must be closed.
     *
     * @throws EdgeInfiniteException it is missing or damaged, or the runtime
     *   refuses it.
     */
    suspend fun open(
        name: String,
        threads: Int?,
    ): LoadedModel {
        loaded?.takeIf { it.artifact.name == name && this.threads == threads }?.let { return it }
        close()
        // Contents were compared when it was imported; sizes are compared again.
        val artifact = Artifact.open(File(root, name), checkFiles = false)
        val target = artifact.manifest.target
        if (target !in TARGETS) {
            throw EdgeInfiniteException(
                "$name was compiled for $target, which the runtime in this app can't drive; " +
                    "export it for the CPU",
            )
        }
        val tokenizer = TextTokenizer.load(artifact.folder, artifact.manifest.backbone.vocabulary)
        val engine = engines.open(artifact, EngineSettings(threads, buffers))
        this.threads = threads
        return LoadedModel(artifact, engine, tokenizer).also { loaded = it }
    }

    /** Frees the weights. Safe to call when nothing is open. */
    fun close() {
        loaded?.engine?.close()
        loaded = null
    }

    companion object {
        /** Targets of artifacts that the runtimes in this app can run: they carry no NPU provider. */
        val TARGETS = setOf("cpu")
    }
}
