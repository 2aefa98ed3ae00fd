package io.edgeinfinite.core

import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.FloatBuffer
import java.nio.LongBuffer

/**
 * Allocates the memory of states: zeroed direct buffers in native byte order.
 *
 * On Android `ByteBuffer.allocateDirect` takes memory from the app's limited Java heap; an app can
 * map `android.os.SharedMemory` (API 27) instead.
 */
public fun interface BufferAllocator {
    /** A direct buffer of exactly [bytes] zeroed bytes. Its byte order is set by the caller. */
    public fun allocate(bytes: Int): ByteBuffer

    /** `ByteBuffer.allocateDirect`. */
    public object Direct : BufferAllocator {
        override fun allocate(bytes: Int): ByteBuffer = ByteBuffer.allocateDirect(bytes)
    }
}

/**
 * The state of one text: a fixed set of tensors that the host owns and the graphs update.
 *
 * Every tensor keeps its buffer for the state's whole life. Letters: L layers, K KV heads,
 * C cache capacity, D head dimension.
 *
 * @property specs the state tensors, from the manifest. All start as zeros.
 * @param buffers allocates the memory.
 */
@EngineThreadApi
public class State
@JvmOverloads
constructor(
    public val specs: List<TensorSpec>,
    private val buffers: BufferAllocator = BufferAllocator.Direct,
) : AutoCloseable {
    private val byName: Map<String, ByteBuffer> =
        specs.associate { spec -> spec.name to allocate(spec, buffers) }

    /** The sessions that share this state until one of them reads; see [Session.fork]. */
    internal val sharers = LinkedHashSet<Session>()
    private val resources = HashMap<Any, AutoCloseable>()

    /** `length [L]` int64, slots in use per layer. */
    private val length: LongBuffer = buffer("length").asLongBuffer()

    /** `has_memory [1]` float32. */
    private val memoryFlag: FloatBuffer = buffer("has_memory").asFloatBuffer()

    /** L. */
    public val layers: Int get() = length.capacity()

    /** False before the first compression, then true. */
    public var hasMemory: Boolean
        get() = memoryFlag.get(0) != 0f
        set(value) {
            memoryFlag.put(0, if (value) 1f else 0f)
        }

    /** Bytes of all state tensors, the same for any length of text. */
    public val bytes: Long get() = byName.values.sumOf { it.capacity().toLong() }

    /** Whether pairs in recall slots have scores; they get them when they leave the window. */
    public val keepsScores: Boolean get() = specs.any { it.role == "scores" }

    /** Slots in use of one layer; its caches are read up to here only. */
    public fun lengthOf(layer: Int): Int = length.get(layer).toInt()

    /** Sets the slots in use of every layer to [of] the layer's index. */
    public fun setLengths(of: (Int) -> Int) {
        for (layer in 0 until layers) length.put(layer, of(layer).toLong())
    }

    /**
     * The whole of a tensor's memory, from position 0, in native byte order.
     *
     * @throws NoSuchElementException the state has no such tensor.
     */
    public fun buffer(name: String): ByteBuffer =
        byName.getValue(name).duplicate().order(ByteOrder.nativeOrder())

    /** Whether there is a tensor of this name; `memory` is missing without a gate. */
    public operator fun contains(name: String): Boolean = name in byName

    /**
     * An engine's resources for this state, such as tensors over its buffers; created once.
     *
     * @param owner the engine.
     * @param create called the first time; closed with the state.
     */
    @Suppress("UNCHECKED_CAST")
    public fun <T : AutoCloseable> resource(
        owner: Any,
        create: () -> T,
    ): T = resources.getOrPut(owner) { create() } as T

    /**
     * A state with the same content; slots that aren't in use are zeros.
     *
     * @throws EdgeInfiniteException there is no memory for it.
     */
    internal fun copy(): State {
        val copy = State(specs, buffers)
        for (spec in specs) {
            val slots = if (spec.isCache) Slots.of(spec, 0, lengthOf(requireNotNull(spec.layer))) else Slots.all(spec)
            val pairs = slots.views(buffer(spec.name)) zip slots.views(copy.buffer(spec.name))
            pairs.forEach { (from, to) -> to.put(from) }
        }
        return copy
    }

    /** Frees the engines' resources. The state can't be used afterwards. Safe to call twice. */
    override fun close() {
        resources.values.forEach { it.close() }
        resources.clear()
    }

    private fun allocate(
        spec: TensorSpec,
        buffers: BufferAllocator,
    ): ByteBuffer {
        val bytes = spec.bytes
        if (bytes > Int.MAX_VALUE) {
            throw EdgeInfiniteException(
                ErrorCode.OUT_OF_MEMORY,
                "${spec.name} takes $bytes bytes, more than one buffer holds; " +
                    "export with a smaller geometry",
            )
        }
        val buffer =
            try {
                buffers.allocate(bytes.toInt())
            } catch (error: OutOfMemoryError) {
                throw EdgeInfiniteException(
                    ErrorCode.OUT_OF_MEMORY,
                    "there is no memory for the state (${spec.name}: $bytes bytes); " +
                        "close other apps or use an artifact of a smaller geometry",
                    error,
                )
            }
        check(buffer.isDirect && buffer.capacity().toLong() == bytes) { "not a direct buffer of $bytes" }
        return buffer.order(ByteOrder.nativeOrder())
    }
}
