package io.edgeinfinite.executorch

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
import io.edgeinfinite.core.TensorSpec
import io.edgeinfinite.core.placeCarried
import io.edgeinfinite.core.slotsGiven
import org.pytorch.executorch.DType
import org.pytorch.executorch.EValue
import org.pytorch.executorch.Module
import org.pytorch.executorch.Tensor
import java.io.File
import java.nio.Buffer
import java.nio.ByteBuffer
import java.nio.ByteOrder

/** Opens ExecuTorch artifacts. */
public class ExecuTorchEngineFactory : EngineFactory {
    override val backend: String = "executorch"

    @EngineThreadApi
    override fun open(
        artifact: Artifact,
        settings: EngineSettings,
    ): Engine = ExecuTorchEngine(artifact, settings)
}

/**
 * The three methods of an ExecuTorch program. See [Engine].
 *
 * The state's own buffers are the methods' inputs, and new keys and values are written into them, so
 * no cache is copied. Caches are `[1, C, K, D]`: a call is given their first U slots, length + T or more,
 * all of the cache's own layer.
 *
 * @param artifact its program is mapped into memory.
 * @throws EdgeInfiniteException ExecuTorch refuses the program.
 */
@EngineThreadApi
public class ExecuTorchEngine
@JvmOverloads
constructor(
    artifact: Artifact,
    private val settings: EngineSettings = EngineSettings(),
) : Engine {
    private val manifest: Manifest = artifact.manifest
    private val module: Module

    override val name: String = "executorch"
    override val geometry: Geometry get() = manifest.geometry
    override val vocabulary: Int get() = manifest.backbone.vocabulary
    override val fingerprint: String = manifest.fingerprint
    override val modelDigest: String = manifest.modelDigest
    override val readsMemory: Boolean = manifest.state.any { it.name == "memory" }
    override val chunkLength: Int = minOf(CHUNK_LENGTH, geometry.segmentLength)

    /** T of one call is at most this, for which every program has memory planned. */
    private val mostTokens = minOf(CHUNK_LENGTH, manifest.state.filter { it.isCache }.minOf { it.shape[SLOTS_AXIS] })

    init {
        if (manifest.backend != name) {
            throw EdgeInfiniteException(
                ErrorCode.NO_ENGINE,
                "${artifact.name} was made for the back end '${manifest.backend}'",
            )
        }
        val file = File(artifact.folder, manifest.graphs.getValue(DECODE).file)
        module =
            refusing("can't load ${artifact.name}") {
                val loaded = Module.load(file.path, Module.LOAD_MODE_MMAP, settings.threads ?: DEFAULT_THREADS)
                try {
                    manifest.graphs.keys.forEach(loaded::loadMethod)
                } catch (error: RuntimeException) {
                    loaded.destroy()
                    throw error
                }
                loaded
            }
    }

    override fun newState(): State = State(manifest.state, settings.buffers)

    override fun prefillSegment(
        tokens: IntArray,
        state: State,
    ): FloatArray {
        var read = Read(FloatArray(0), emptyMap())
        var start = 0
        while (start < tokens.size) {
            val end = minOf(start + mostTokens, tokens.size)
            // The method takes two tokens or more; one is what the other is made for.
            val method = if (end - start > 1) PREFILL else DECODE
            read = readTokens(method, tokens.copyOfRange(start, end), state, start, read.renewed)
            start = end
        }
        return read.keptIn(state)
    }

    override fun decodeStep(
        token: Int,
        state: State,
    ): FloatArray = readTokens(DECODE, intArrayOf(token), state, 0, emptyMap()).keptIn(state)

    override fun compressMemory(state: State) {
        val graph = manifest.graphs.getValue(COMPRESS)
        val inputs = graph.inputs.map { EValue.from(tensorOf(it, it.shape, state.buffer(it.name))) }
        val computed = graph.outputs.zip(execute(COMPRESS, inputs)) { spec, output -> spec to output.toTensor() }
        for ((spec, output) in computed) {
            spec.updates?.let { output.copyDataInto(state.buffer(it).asFloatBuffer()) }
        }
        if (geometry.policy == CARRY) {
            val byName = computed.associate { (spec, output) -> spec.name to output }
            placeCarried(state, geometry) { bytesOf(byName.getValue(it)) }
        }
    }

    override fun close(): Unit = module.destroy()

    /**
     * What a method returned, copied: ExecuTorch's outputs die at the next call.
     *
     * @property logits `[V]` of the last token.
     * @property renewed what replaces tensors of the state, by their names.
     */
    private class Read(
        val logits: FloatArray,
        val renewed: Map<String, ByteBuffer>,
    ) {
        /** Only when all tokens are read, so that a call that fails leaves the text as it was. */
        fun keptIn(state: State): FloatArray {
            renewed.forEach { (name, bytes) -> state.buffer(name).put(bytes) }
            return logits
        }
    }

    /**
     * Runs a method over T tokens that follow [start] more than the state's `length` says.
     *
     * @param renewed what a call before this one computed anew; read in place of the state's.
     */
    private fun readTokens(
        method: String,
        tokens: IntArray,
        state: State,
        start: Int,
        renewed: Map<String, ByteBuffer>,
    ): Read {
        val graph: GraphSpec = manifest.graphs.getValue(method)
        val step = if (method == DECODE) SLOTS_STEP else 1
        val inputs =
            graph.inputs.map { spec ->
                val tensor =
                    when {
                        spec.name == "tokens" -> Tensor.fromBlob(longs(tokens), longArrayOf(1, tokens.size.toLong()))
                        spec.name == "length" -> lengthOf(spec, state, start)
                        spec.isCache -> cacheOf(spec, state, start + tokens.size, step)
                        else -> tensorOf(spec, spec.shape, renewed[spec.name] ?: state.buffer(spec.name))
                    }
                EValue.from(tensor)
            }
        val outputs = execute(method, inputs).map { it.toTensor() }
        val replacing =
            buildMap {
                for ((spec, output) in graph.outputs.zip(outputs)) {
                    spec.updates?.let { put(it, bytesOf(output)) }
                }
            }
        return Read(outputs.first().dataAsFloatArray, replacing)
    }

    private fun execute(
        method: String,
        inputs: List<EValue>,
    ): Array<EValue> = refusing("can't compute $method") { module.execute(method, *inputs.toTypedArray()) }

    private fun lengthOf(
        spec: TensorSpec,
        state: State,
        start: Int,
    ): Tensor {
        val layers = spec.shape[0]
        return Tensor.fromBlob(longs(IntArray(layers) { state.lengthOf(it) + start }), longArrayOf(layers.toLong()))
    }

    /**
     * A cache, whole or, where the method takes U slots, those in use and [more], rounded up to a
     * multiple of [step]: one piece of memory.
     */
    private fun cacheOf(
        spec: TensorSpec,
        state: State,
        more: Int,
        step: Int,
    ): Tensor {
        val used = state.slotsGiven(spec, more, step)
        val shape = spec.shape.map { if (it < 0) used else it }
        return tensorOf(spec, shape, state.buffer(spec.name))
    }

    /** A tensor over the start of a buffer; ExecuTorch wants a buffer of exactly its size. */
    private fun tensorOf(
        spec: TensorSpec,
        shape: List<Int>,
        buffer: ByteBuffer,
    ): Tensor {
        val sizes = LongArray(shape.size) { shape[it].toLong() }
        (buffer as Buffer).limit(shape.fold(spec.elementBytes, Int::times))
        val exact = buffer.slice().order(ByteOrder.nativeOrder())
        return when (spec.dtype) {
            "float32" -> Tensor.fromBlob(exact.asFloatBuffer(), sizes)
            "int64" -> Tensor.fromBlob(exact.asLongBuffer(), sizes)
            "int8" -> Tensor.fromBlob(exact, sizes)
            else -> throw EdgeInfiniteException(
                ErrorCode.ARTIFACT_NEWER,
                "unknown tensor type '${spec.dtype}'; update the app",
            )
        }
    }

    /** A copy of an output: float32, or the bytes of an int8 cache. */
    private fun bytesOf(output: Tensor): ByteBuffer {
        val isBytes = output.dtype() == DType.INT8
        val size = output.numel().toInt() * if (isBytes) 1 else Float.SIZE_BYTES
        val bytes = ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder())
        if (isBytes) output.copyDataInto(bytes.duplicate()) else output.copyDataInto(bytes.asFloatBuffer())
        return bytes
    }

    private fun longs(values: IntArray) =
        Tensor.allocateLongBuffer(values.size).apply {
            values.forEachIndexed { index, value -> put(index, value.toLong()) }
        }

    /** ExecuTorch's own exceptions, and its missing libraries, as one line. */
    private fun <T> refusing(
        what: String,
        compute: () -> T,
    ): T =
        try {
            compute()
        } catch (error: EdgeInfiniteException) {
            throw error
        } catch (error: RuntimeException) {
            throw EdgeInfiniteException(
                ErrorCode.ENGINE_FAILED,
                "executorch $what: ${error.message.orEmpty().lineSequence().first()}",
                error,
            )
        } catch (error: LinkageError) {
            throw EdgeInfiniteException(ErrorCode.NO_ENGINE, "executorch isn't in this app: ${error.message}", error)
        }

    private companion object {
        const val CHUNK_LENGTH = 256

        /** Of C in `B C K D`. */
        const val SLOTS_AXIS = 1

        /** XNNPACK prepares a graph anew whenever a size changes; slots that hold nothing are masked. */
        const val SLOTS_STEP = 64
        const val CARRY = "carry"

        /** ExecuTorch chooses. */
        const val DEFAULT_THREADS = 0
    }
}
