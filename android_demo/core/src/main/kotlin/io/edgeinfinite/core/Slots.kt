package io.edgeinfinite.core

import java.nio.Buffer
import java.nio.ByteBuffer

/**
 * A range of a cache's slots, along the axis C of its layout; or a whole other tensor.
 *
 * @property shape the part's shape, with the range's length as C.
 * @property capacity C of the whole tensor.
 */
internal class Slots private constructor(
    val shape: List<Int>,
    val capacity: Int,
    private val blocks: Int,
    private val slotBytes: Int,
    private val from: Int,
    private val count: Int,
) {
    /** Views of the part, one per block, without a copy: a state may be larger than the Java heap.
     * */
    fun views(whole: ByteBuffer): List<ByteBuffer> = (0 until blocks).map { window(whole, it) }

    /**
     * Copies [source] into the part.
     *
     * @param source a tensor of the same layout with [sourceCapacity] slots, the first of which count.
     */
    fun write(
        source: ByteBuffer,
        whole: ByteBuffer,
        sourceCapacity: Int = count,
    ) {
        for (block in 0 until blocks) {
            val start = block * sourceCapacity * slotBytes
            window(whole, block).put(source.window(start, count * slotBytes))
        }
    }

    /** Copies the part to the whole tensor's first slots; the two may overlap. */
    fun moveToFront(whole: ByteBuffer) {
        val bytes = ByteArray(count * slotBytes)
        for (block in 0 until blocks) {
            window(whole, block).get(bytes)
            whole.window(block * capacity * slotBytes, bytes.size).put(bytes)
        }
    }

    private fun window(
        whole: ByteBuffer,
        block: Int,
    ) = whole.window((block * capacity + from) * slotBytes, count * slotBytes)

    companion object {
        /** The whole tensor. */
        fun all(spec: TensorSpec): Slots {
            val axis = axisOf(spec)
            return if (axis < 0) Slots(spec.shape, 1, 1, spec.bytes.toInt(), 0, 1) else of(spec, 0, spec.shape[axis])
        }

        /** Slots [from] to before [until] of a cache. */
        fun of(
            spec: TensorSpec,
            from: Int,
            until: Int,
        ): Slots {
            val axis = axisOf(spec)
            return Slots(
                shape = spec.shape.mapIndexed { at, size -> if (at == axis) until - from else size },
                capacity = spec.shape[axis],
                blocks = spec.shape.take(axis).fold(1, Int::times),
                slotBytes = spec.shape.drop(axis + 1).fold(spec.elementBytes, Int::times),
                from = from,
                count = until - from,
            )
        }

        private fun axisOf(spec: TensorSpec): Int = spec.dims.split(' ').indexOf("C")
    }
}

/** [bytes] bytes from [start] on. Through java.nio.Buffer, as Android before API 28 needs it. */
private fun ByteBuffer.window(
    start: Int,
    bytes: Int,
): ByteBuffer {
    val window = duplicate()
    (window as Buffer).limit(start + bytes)
    (window as Buffer).position(start)
    return window
}

/**
 * U, the number of first slots of a cache that a call gets; for engines.
 *
 * Length and C are those of the cache's own layer: layers may differ in both.
 *
 * @param cache one of the state's.
 * @param more slots that the call needs beyond the layer's `length`.
 * @param step U is a multiple of it, or C.
 */
public fun State.slotsGiven(
    cache: TensorSpec,
    more: Int,
    step: Int,
): Int {
    val needed = lengthOf(requireNotNull(cache.layer)) + more
    val capacity = Slots.all(specs.first { it.name == cache.name }).capacity
    return minOf((needed + step - 1) / step * step, capacity)
}

/**
 * Writes keys and values of new tokens behind the slots in use; for engines whose graphs return them.
 *
 * @param state its caches are changed, its `length` is not.
 * @param skipped slots behind the ones in use that an earlier part of the same call has filled.
 * @param count how many of the new tokens count, the first ones.
 * @param room T, for how many tokens the outputs have room.
 * @param outputs `k_new_0`, `v_new_0`, ...: in the caches' own layout with T in place of C.
 */
public fun placeNew(
    state: State,
    skipped: Int,
    count: Int,
    room: Int,
    outputs: (String) -> ByteBuffer,
) {
    for (cache in state.specs.filter { it.isCache }) {
        val layer = requireNotNull(cache.layer)
        val start = state.lengthOf(layer) + skipped
        val new = outputs("${cache.role.first()}_new_$layer")
        Slots.of(cache, start, start + count).write(new, state.buffer(cache.name), room)
    }
}

/**
 * Moves the newest [count] tokens of a layer with a sliding window to its first slots.
 *
 * Their positions stay, so their keys do too.
 */
internal fun keepNewest(
    state: State,
    layer: Int,
    count: Int,
) {
    val length = state.lengthOf(layer)
    for (cache in state.specs.filter { it.isCache && it.layer == layer }) {
        Slots.of(cache, length - count, length).moveToFront(state.buffer(cache.name))
    }
    state.setLengths { if (it == layer) count else state.lengthOf(it) }
}

/**
 * Copies the outputs of `compress_memory` under policy `carry` behind the sinks of every cache; for
 * engines. No slot stays free between recall slots and window. A layer with a sliding window gets its
 * newest tokens in its first slots.
 *
 * @param state as it was when the graph was run; its caches are changed, its `length` is not.
 * @param outputs `k_recall_0`, `v_recall_0`, `k_window_0`, ...: recall slots and window in the caches'
 *   own layout. Only recall slots with a candidate count.
 */
public fun placeCarried(
    state: State,
    geometry: Geometry,
    outputs: (String) -> ByteBuffer,
) {
    val sinks = geometry.sinkLength
    val window = geometry.windowLength
    for (cache in state.specs.filter { it.isCache }) {
        val kind = cache.role.first()
        val layer = requireNotNull(cache.layer)
        if (geometry.slides(layer)) {
            val most = geometry.keptOf(layer)
            val newest = outputs("${kind}_window_$layer")
            Slots.of(cache, 0, minOf(most, state.lengthOf(layer))).write(newest, state.buffer(cache.name), most)
            continue
        }
        val slots = geometry.slotsOf(layer)
        val kept = minOf(slots, state.lengthOf(layer) - sinks - window)
        val whole = state.buffer(cache.name)
        if (kept > 0) {
            val recall = outputs("${kind}_recall_$layer")
            Slots.of(cache, sinks, sinks + kept).write(recall, whole, slots)
        }
        val start = sinks + kept
        Slots.of(cache, start, start + window).write(outputs("${kind}_window_$layer"), whole)
    }
}
