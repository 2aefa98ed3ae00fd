package io.edgeinfinite.core

/**
 * What a session needs from a runtime: three graphs over states that the host owns.
 *
 * An engine holds weights and no text, so sessions may share one. Calls must come one at a time: an
 * [EngineDispatcher] ensures that, with a stack large enough for native code. Only the session
 * changes `length` and `has_memory`. Letters: T new tokens, V vocabulary, S sinks, N segment, W
 * window.
 */
@EngineThreadApi
public interface Engine : AutoCloseable {
    /** For statistics: `onnx`, `executorch`. */
    public val name: String

    public val geometry: Geometry

    /** V, the number of token ids. */
    public val vocabulary: Int

    /** Weights, gate, scorer, rank rule, quantization: equal ones continue each other's states bit for bit. */
    public val fingerprint: String

    /** Checkpoint, gate, scorer, rank rule: equal ones take over each other's states. */
    public val modelDigest: String

    /**
     * Whether there is a gate, so that `memory` and `memory_norm` are kept and read. Without a
     * gate, `reencode` drops the N tokens of a compression. `carry` keeps those that rank high
     * enough for the recall slots, with or without a gate.
     */
    public val readsMemory: Boolean

    /** T of one prefill call that is fastest here; any T from 1 to N works. */
    public val chunkLength: Int

    /** An empty state; to be closed before the engine. */
    public fun newState(): State

    /**
     * Reads T tokens of one segment into the cache at slots `length`..`length + T - 1`.
     *
     * @param tokens ids, at least one.
     * @param state made by [newState]; caches updated in place.
     * @return logits `[V]` of the last token, the caller's own array.
     */
    public fun prefillSegment(
        tokens: IntArray,
        state: State,
    ): FloatArray

    /** The same for one token. */
    public fun decodeStep(
        token: Int,
        state: State,
    ): FloatArray

    /**
     * Compresses: the policy evicts the N oldest residual tokens.
     *
     * Under `reencode` they are folded into `memory` and `memory_norm`. The caches don't change,
     * and without a gate the session doesn't call this. Under `carry` their pairs are scored and
     * ranked with the pairs in the recall slots. The highest fill the slots, the window moves down
     * behind them, with keys rotated to their new positions, and `scores_i` become the scores of
     * the kept pairs. With a gate, all N are also folded into `memory` and `memory_norm`. The
     * session sets `length` and `has_memory` afterwards.
     *
     * @param state under `reencode` with S + N or more slots in use, under `carry` with N + W
     *   residual tokens; updated in place.
     */
    public fun compressMemory(state: State)

    /** Frees the weights. Safe to call twice. */
    override fun close()
}

/** What computes an artifact's graphs over tokens. Compressions run on the CPU. */
public enum class Accelerator {
    CPU,
    NPU,
}

/**
 * How to run an artifact.
 *
 * @property threads CPU threads, null for the engine's default.
 * @property buffers where states get their memory.
 * @property accelerator [Accelerator.NPU] takes effect where artifact, device and runtime have one; the
 *   CPU computes otherwise.
 */
public data class EngineSettings
@JvmOverloads
constructor(
    val threads: Int? = null,
    val buffers: BufferAllocator = BufferAllocator.Direct,
    val accelerator: Accelerator = Accelerator.CPU,
)

/** Opens artifacts of one back end; `OnnxEngineFactory` and `ExecuTorchEngineFactory` are two. */
public interface EngineFactory {
    /** The manifest's `backend` that this one opens: `onnx`, `executorch`. */
    public val backend: String

    /**
     * @param artifact already checked.
     * @throws EdgeInfiniteException the runtime refuses the artifact.
     */
    @EngineThreadApi
    public fun open(
        artifact: Artifact,
        settings: EngineSettings = EngineSettings(),
    ): Engine
}

/**
 * Opens an artifact with the engine of its back end.
 *
 * @receiver the engines that are built in.
 * @throws EdgeInfiniteException none of them knows the back end, or the runtime refuses.
 */
@EngineThreadApi
public fun List<EngineFactory>.open(
    artifact: Artifact,
    settings: EngineSettings = EngineSettings(),
): Engine {
    val backend = artifact.manifest.backend
    val factory =
        find { it.backend == backend } ?: throw EdgeInfiniteException(
            ErrorCode.NO_ENGINE,
            "${artifact.name} was made for the back end '$backend'; this app has " +
                joinToString { it.backend } + ": export the artifact for one of these",
        )
    return factory.open(artifact, settings)
}
