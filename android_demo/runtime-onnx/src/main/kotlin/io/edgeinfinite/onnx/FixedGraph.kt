package io.edgeinfinite.onnx

import ai.onnxruntime.OnnxTensor
import ai.onnxruntime.OrtSession
import io.edgeinfinite.core.DYNAMIC
import io.edgeinfinite.core.EngineThreadApi
import io.edgeinfinite.core.GraphSpec
import io.edgeinfinite.core.State
import io.edgeinfinite.core.TensorSpec
import io.edgeinfinite.core.placeNew
import java.nio.ByteBuffer
import java.nio.ByteOrder

/**
 * `prefill_segment` or `decode_step` of fixed shape, as an NPU takes them: the host fills chunks up,
 * scales M and z, and writes K and V. As `runtime_py/engines/fixed_graph.py`.
 *
 * Letters: L layers, K KV heads, T the graph's number of tokens, D head dimension.
 *
 * @param session runs the graph, on any provider.
 * @param spec its signature.
 */
@EngineThreadApi
internal class FixedGraph(
    private val session: OrtSession,
    private val spec: GraphSpec,
) {
    /** T. */
    val tokens: Int = tokensOf(spec) ?: 1

    /** Reads [ids], at least one, in chunks of T; the logits `[V]` of the last one. */
    fun logits(
        state: State,
        ids: IntArray,
    ): FloatArray {
        val bound = state.resource(this) { Bound(state) }
        for (begin in ids.indices step tokens) {
            val count = minOf(tokens, ids.size - begin)
            bound.set(ids, begin, count)
            computing(spec.file) { session.run(bound.inputs, emptySet(), bound.outputs).close() }
            placeNew(state, begin, count, tokens) { bound.own(it).duplicate() }
        }
        return bound.own(LOGITS).asFloatBuffer().let { values -> FloatArray(values.capacity(), values::get) }
    }

    /** A state's caches, and the graph's own inputs and outputs. */
    private inner class Bound(
        private val state: State,
    ) : AutoCloseable {
        private val buffers = HashMap<String, ByteBuffer>()
        val inputs: Map<String, OnnxTensor> = spec.inputs.associate { it.name to inputOf(it) }
        val outputs: Map<String, OnnxTensor> =
            spec.outputs.associate { it.name to onnxTensor(it.dtype, it.shape, allocate(it.name, it.dtype, it.shape)) }

        /** An input or output that isn't the state's. */
        fun own(name: String): ByteBuffer = buffers.getValue(name)

        /** Sets what isn't the state's: [count] tokens from [begin] on, and what follows from them. */
        fun set(
            ids: IntArray,
            begin: Int,
            count: Int,
        ) {
            val tokens = own("tokens").asLongBuffer()
            for (index in 0 until tokens.capacity()) {
                tokens.put(index, if (index < count) ids[begin + index].toLong() else FILLER)
            }
            val length = own("length").asLongBuffer()
            for (layer in 0 until length.capacity()) length.put(layer, (state.lengthOf(layer) + begin).toLong())
            buffers["count"]?.asLongBuffer()?.put(0, count.toLong())
            if ("memory" in buffers) scaleMemory()
        }

        /**
         * M and z divided by the sum of z, KV head by KV head, so that float16 holds them.
         *
         * What is read, σ(q) M / σ(q) z, doesn't change. An empty memory becomes M = 0 and z = 1 / D: no
         * division by zero.
         */
        private fun scaleMemory() {
            val dim = spec.inputs.first { it.name == "memory_norm" }.shape.last()
            val memory = state.buffer("memory").asFloatBuffer()
            val norm = state.buffer("memory_norm").asFloatBuffer()
            val scaledMemory = own("memory").asFloatBuffer()
            val scaledNorm = own("memory_norm").asFloatBuffer()
            for (head in 0 until norm.capacity() / dim) {
                val total = (0 until dim).sumOf { norm.get(head * dim + it).toDouble() }.toFloat()
                val empty = total <= 0
                for (index in head * dim until (head + 1) * dim) {
                    scaledNorm.put(index, if (empty) 1f / dim else norm.get(index) / total)
                }
                for (index in head * dim * dim until (head + 1) * dim * dim) {
                    scaledMemory.put(index, if (empty) 0f else memory.get(index) / total)
                }
            }
        }

        override fun close() = (inputs.values + outputs.values).forEach { it.close() }

        private fun inputOf(input: TensorSpec): OnnxTensor {
            val shared = input.isCache || input.name == "has_memory"
            val buffer = if (shared) state.buffer(input.name) else allocate(input.name, input.dtype, input.shape)
            return onnxTensor(input.dtype, input.shape, buffer)
        }

        private fun allocate(
            name: String,
            dtype: String,
            shape: List<Int>,
        ): ByteBuffer {
            val bytes = shape.fold(elementBytes(dtype), Int::times)
            return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder()).also { buffers[name] = it }
        }
    }

    companion object {
        /** Fills chunks up; no token of the text attends to it. */
        private const val FILLER = 0L
        private const val LOGITS = "logits"

        /** T of a graph of fixed shape, null for one that takes any number of tokens and writes into the caches. */
        fun tokensOf(graph: GraphSpec): Int? {
            val writes = graph.outputs.any { it.role == "k_new" }
            return graph.inputs.find { it.role == "tokens" }?.shape?.get(1)?.takeIf { it != DYNAMIC && writes }
        }
    }
}
