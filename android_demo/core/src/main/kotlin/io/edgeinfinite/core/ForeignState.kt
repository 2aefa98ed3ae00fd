package io.edgeinfinite.core

import java.nio.Buffer
import java.nio.ByteBuffer
import java.nio.ByteOrder

/**
 * The layout of a state that another artifact of the same model computed.
 *
 * Engines lay their caches out differently and hold them in float32 or float16; what the numbers mean
 * is the same for all of them. An int8 cache is in steps that only its own artifact knows.
 *
 * @property cacheDims layout of the stored caches by role, such as `B K C D`.
 */
internal class ForeignState(
    private val cacheDims: Map<String, String>,
) {
    /**
     * A stored tensor as [spec] wants it.
     *
     * @param shape that it must have then; without one of this shape the tensor comes back as it is.
     * @throws IllegalArgumentException the layout is none of such a cache.
     * @throws EdgeInfiniteException a number is too large for float16, or a cache is int8.
     */
    fun converted(
        tensor: StoredTensor,
        spec: TensorSpec,
        shape: List<Int>,
    ): StoredTensor {
        if (!spec.isCache) return tensor
        if (INT8 == tensor.dtype || INT8 == spec.dtype) {
            throw EdgeInfiniteException(
                ErrorCode.SESSION_OF_ANOTHER_MODEL,
                "a session with an int8 cache is in the steps of one artifact, another one has others; " +
                    "open it with the artifact that saved it, or read the text again",
            )
        }
        val dims = cacheDims[spec.role].orEmpty()
        val found = dims.split(' ')
        val wanted = spec.dims.split(' ')
        require(found.sorted() == wanted.sorted() && tensor.shape.size == found.size) {
            "${spec.name} ${tensor.shape} has the layout '$dims'"
        }
        val known = tensor.dtype in FLOATS && spec.dtype in FLOATS
        if (!known || (found == wanted && tensor.dtype == spec.dtype)) return tensor
        val order = wanted.map(found::indexOf)
        return if (order.map { tensor.shape[it] } == shape) moved(tensor, order, spec) else tensor
    }

    /** With the axes in this [order], number by number. */
    private fun moved(
        tensor: StoredTensor,
        order: List<Int>,
        spec: TensorSpec,
    ): StoredTensor {
        val strides = IntArray(order.size) { axis -> tensor.shape.drop(axis + 1).fold(1, Int::times) }
        val shape = order.map { tensor.shape[it] }
        val steps = order.map { strides[it] }
        val count = shape.fold(1, Int::times)
        val target = ByteBuffer.allocate(count * spec.elementBytes).order(ByteOrder.LITTLE_ENDIAN)
        val source = tensor.data
        val index = IntArray(order.size)
        var from = 0
        repeat(count) {
            val value = read(tensor.dtype, source, from)
            write(spec, target, value)
            var axis = order.lastIndex
            while (axis >= 0) {
                from += steps[axis]
                if (++index[axis] < shape[axis]) break
                from -= steps[axis] * shape[axis]
                index[axis--] = 0
            }
        }
        (target as Buffer).flip() // older Androids have only Buffer's
        return StoredTensor(spec.dtype, shape, listOf(target))
    }

    private fun read(
        dtype: String,
        source: ByteBuffer,
        at: Int,
    ): Float =
        if (dtype == FLOAT16) {
            halfToFloat(source.getShort(at * Short.SIZE_BYTES))
        } else {
            source.getFloat(at * Float.SIZE_BYTES)
        }

    private fun write(
        spec: TensorSpec,
        target: ByteBuffer,
        value: Float,
    ) {
        if (spec.dtype != FLOAT16) {
            target.putFloat(value)
            return
        }
        val half = floatToHalf(value)
        if (value.isFinite() && !halfToFloat(half).isFinite()) {
            throw EdgeInfiniteException(
                ErrorCode.SESSION_OF_ANOTHER_MODEL,
                "${spec.name} of this session has numbers that float16 can't hold; export the artifact with " +
                    "--cache-type float32 to go on from it",
            )
        }
        target.putShort(half)
    }

    private companion object {
        const val FLOAT16 = "float16"
        const val INT8 = "int8"
        val FLOATS = setOf(FLOAT16, "float32")
    }
}
