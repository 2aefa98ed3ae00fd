package io.edgeinfinite.onnx

import ai.onnxruntime.OnnxTensor
import ai.onnxruntime.OnnxValue
import ai.onnxruntime.OrtEnvironment
import ai.onnxruntime.OrtException
import ai.onnxruntime.OrtSession
import io.edgeinfinite.core.Accelerator
import io.edgeinfinite.core.Artifact
import io.edgeinfinite.core.COMPRESS
import io.edgeinfinite.core.DECODE
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.EngineFactory
import io.edgeinfinite.core.EngineSettings
import io.edgeinfinite.core.EngineThreadApi
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.Geometry
import io.edgeinfinite.core.GraphSpec
import io.edgeinfinite.core.Manifest
import io.edgeinfinite.core.PREFILL
import io.edgeinfinite.core.State
import io.edgeinfinite.core.placeCarried
import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder

/** Opens ONNX artifacts with onnxruntime's Java API, the same on Android and on the desktop. */
public class OnnxEngineFactory : EngineFactory {
    override val backend: String = "onnx"

    @EngineThreadApi
    override fun open(
        artifact: Artifact,
        settings: EngineSettings,
    ): Engine = OnnxEngine(artifact, settings)
}

/**
 * The graphs of an ONNX artifact. See [Engine].
 *
 * Caches are bound both as input and as output, so the attention operator writes into them and
 * nothing is ever copied; every tensor is made once per state. An artifact that was compiled for an
 * NPU has graphs of fixed shape instead ([FixedGraph]), which the NPU or the CPU computes.
 *
 * @param artifact its files are mapped into memory.
 * @throws EdgeInfiniteException onnxruntime refuses the artifact.
 */
@EngineThreadApi
public class OnnxEngine
@JvmOverloads
constructor(
    artifact: Artifact,
    private val settings: EngineSettings = EngineSettings(),
) : Engine {
    private val manifest: Manifest = artifact.manifest
    private val environment = OrtEnvironment.getEnvironment()
    private val sessions = HashMap<String, OrtSession>()
    private val fixed: Map<String, FixedGraph>

    /** Why the CPU computes an artifact that was asked for on an NPU; null where it isn't so. */
    public val npuProblem: String?

    /** What computes the graphs over tokens. */
    public val accelerator: Accelerator

    override val name: String = "onnx"
    override val geometry: Geometry get() = manifest.geometry
    override val vocabulary: Int get() = manifest.backbone.vocabulary
    override val fingerprint: String = manifest.fingerprint
    override val modelDigest: String = manifest.modelDigest
    override val readsMemory: Boolean = manifest.state.any { it.name == "memory" }
    override val chunkLength: Int

    init {
        if (manifest.backend != "onnx") {
            throw EdgeInfiniteException(
                ErrorCode.NO_ENGINE,
                "${artifact.name} was made for the back end '${manifest.backend}'",
            )
        }
        val npu = Npu(artifact, settings)
        npuProblem = npu.problem
        accelerator = if (npu.sessions.isEmpty()) Accelerator.CPU else Accelerator.NPU
        val overTokens = manifest.graphs.filterValues { FixedGraph.tokensOf(it) != null }
        try {
            for (graph in manifest.graphs.filterKeys { it !in npu.sessions }.values) {
                sessions.getOrPut(graph.file) { open(File(artifact.folder, graph.file)) }
            }
        } catch (error: OrtException) {
            (sessions.values + npu.sessions.values).forEach { it.close() }
            throw EdgeInfiniteException(
                ErrorCode.ENGINE_FAILED,
                "onnxruntime ${environment.version} refuses ${artifact.name}: " +
                    error.message.orEmpty().lineSequence().first(),
                error,
            )
        }
        npu.sessions.forEach { (name, session) -> sessions[manifest.graphs.getValue(name).file] = session }
        fixed = overTokens.mapValues { (_, graph) -> FixedGraph(sessions.getValue(graph.file), graph) }
        chunkLength = fixed[PREFILL]?.tokens ?: minOf(CHUNK_LENGTH, geometry.segmentLength)
    }

    override fun newState(): State = State(manifest.state, settings.buffers)

    override fun prefillSegment(
        tokens: IntArray,
        state: State,
    ): FloatArray = readTokens(PREFILL, tokens, state)

    override fun decodeStep(
        token: Int,
        state: State,
    ): FloatArray = readTokens(DECODE, intArrayOf(token), state)

    override fun compressMemory(state: State) {
        val bound = boundTo(state)
        bound.run(manifest.graphs.getValue(COMPRESS), emptyMap())
        if (geometry.policy == CARRY) placeCarried(state, geometry, bound::output)
    }

    override fun close(): Unit = sessions.values.forEach { it.close() }

    private fun readTokens(
        name: String,
        tokens: IntArray,
        state: State,
    ): FloatArray {
        fixed[name]?.let { return it.logits(state, tokens) }
        val buffer = ByteBuffer.allocateDirect(tokens.size * Long.SIZE_BYTES).order(ByteOrder.nativeOrder())
        val ids = buffer.asLongBuffer()
        tokens.forEachIndexed { index, token -> ids.put(index, token.toLong()) }
        val shape = longArrayOf(1, tokens.size.toLong())
        val bound = boundTo(state)
        OnnxTensor.createTensor(environment, ids, shape).use { tensor ->
            bound.run(manifest.graphs.getValue(name), mapOf("tokens" to tensor))
        }
        return bound.logits()
    }

    private fun boundTo(state: State): BoundState = state.resource(this) { BoundState(state) }

    private fun open(file: File): OrtSession =
        OrtSession.SessionOptions().use { options ->
            settings.threads?.let { options.setIntraOpNumThreads(it) }
            options.setInterOpNumThreads(1)
            // T changes from call to call, so a plan of the memory for one T is of no use.
            options.setMemoryPatternOptimization(false)
            // Under `reencode` it runs rarely, so its working memory is returned to the system
            // afterwards.
            options.setCPUArenaAllocator(geometry.policy == CARRY || file.name != manifest.graphs[COMPRESS]?.file)
            // Threads spin while a call runs, where it pays, and sleep between calls.
            options.addConfigEntry("session.force_spinning_stop", "1")
            environment.createSession(file.path, options)
        }

    /** One state's tensors, and the outputs of every graph by name. */
    private inner class BoundState(
        private val state: State,
    ) : AutoCloseable {
        private val tensors: Map<String, OnnxTensor> =
            state.specs.associate { it.name to onnxTensor(it.dtype, it.shape, state.buffer(it.name)) }
        private val scratch = HashMap<String, ByteBuffer>()
        private val outputs: Map<GraphSpec, Map<String, OnnxValue>> =
            manifest.graphs
                .filterKeys { it !in fixed }
                .values
                .associateWith(::outputsOf)

        /** Runs a graph over the state; [more] are its inputs that are no part of the state. */
        fun run(
            graph: GraphSpec,
            more: Map<String, OnnxTensor>,
        ) {
            val inputs = graph.inputs.associate { it.name to (more[it.name] ?: tensors.getValue(it.name)) }
            computing(graph.file) {
                sessions.getValue(graph.file).run(inputs, emptySet(), outputs.getValue(graph)).close()
            }
            for (output in graph.outputs) {
                val target = output.updates ?: continue
                state.buffer(target).put(output(output.name))
            }
        }

        /** An output of the last run, valid until the next one. */
        fun output(name: String): ByteBuffer = scratch.getValue(name).duplicate()

        /** The logits of the last run, copied out. */
        fun logits(): FloatArray {
            val values = output(LOGITS).order(ByteOrder.nativeOrder()).asFloatBuffer()
            return FloatArray(values.remaining()).also { values.get(it) }
        }

        override fun close() {
            val owned = outputs.values.flatMap { it.values }.toSet() - tensors.values.toSet()
            (owned + tensors.values).forEach { it.close() }
        }

        private fun outputsOf(graph: GraphSpec): Map<String, OnnxValue> =
            graph.outputs.associate { output ->
                val alias = output.alias
                output.name to
                    if (alias != null) {
                        tensors.getValue(alias)
                    } else {
                        val bytes = output.shape.fold(elementBytes(output.dtype), Int::times)
                        val buffer =
                            scratch.getOrPut(output.name) {
                                ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder())
                            }
                        onnxTensor(output.dtype, output.shape, buffer)
                    }
            }
    }

    private companion object {
        const val LOGITS = "logits"
        const val CARRY = "carry"

        /** As in Python, where longer ones were a little faster and held more activations. */
        const val CHUNK_LENGTH = 128
    }
}
