package io.edgeinfinite.app.data

import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import io.edgeinfinite.core.Accelerator
import io.edgeinfinite.core.Artifact
import io.edgeinfinite.core.BufferAllocator
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.EngineFactory
import io.edgeinfinite.core.EngineSettings
import io.edgeinfinite.core.TextTokenizer
import io.edgeinfinite.core.open
import io.edgeinfinite.onnx.OnnxEngine
import java.io.File

/** An artifact with its engine and tokenizer, ready for sessions. */
class LoadedModel(
    val artifact: Artifact,
    val engine: Engine,
    val tokenizer: TextTokenizer,
) {
    /** What computes its tokens. */
    val accelerator: Accelerator get() = (engine as? OnnxEngine)?.accelerator ?: Accelerator.CPU

    /** Why the CPU does, though the NPU was asked for; null where it isn't so. */
    val npuProblem: String? get() = (engine as? OnnxEngine)?.npuProblem
}

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
    @Volatile
    private var loaded: LoadedModel? = null
    private var opened: HowToRun? = null

    /**
     * Opens a model, or hands out the open one; another one that was open is closed.
     *
     * Sessions of the model that was open before must be closed.
     *
     * @throws EdgeInfiniteException it is missing or damaged, or the runtime refuses it.
     * @throws ProblemException it is for an accelerator that the runtimes here can't drive.
     */
    suspend fun open(
        name: String,
        how: HowToRun,
    ): LoadedModel {
        loaded?.takeIf { it.artifact.name == name && opened == how }?.let { return it }
        close()
        // Contents were compared when it was imported; sizes are compared again.
        val artifact = Artifact.open(File(root, name), checkFiles = false)
        val target = artifact.manifest.target
        if (target !in TARGETS) {
            throw ProblemException(R.string.problem_target, name, target)
        }
        val tokenizer = TextTokenizer.load(artifact.folder, artifact.manifest.backbone.vocabulary)
        val engine = engines.open(artifact, EngineSettings(how.threads, buffers, how.accelerator))
        opened = how
        return LoadedModel(artifact, engine, tokenizer).also { loaded = it }
    }

    /** Why the open model isn't on the NPU though that was asked for; on any thread. */
    val npuProblem: String? get() = loaded?.npuProblem

    /** Frees the weights. Safe to call when nothing is open. */
    fun close() {
        loaded?.engine?.close()
        loaded = null
    }

    companion object {
        /** Targets of artifacts that the runtimes in this app can run, those for an NPU on the CPU too. */
        private val TARGETS = setOf("cpu", "qnn-htp")
    }
}
