package io.edgeinfinite.core

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

/** How much of a cache a call is given, where layers differ in recall slots. */
class SlotsTest {
    private val capacities = listOf(200, 150)

    private fun state(lengths: List<Int>): State {
        val caches =
            listOf("k", "v").flatMap { kind ->
                capacities.mapIndexed { layer, slots ->
                    val role = "${kind}_cache"
                    TensorSpec("${role}_$layer", "float32", listOf(1, slots, 2, 4), "B C K D", role, layer)
                }
            }
        val counters =
            listOf(
                TensorSpec("length", "int64", listOf(capacities.size), "L", "length"),
                TensorSpec("has_memory", "float32", listOf(1), "1", "has_memory"),
            )
        return State(caches + counters).apply { setLengths(lengths::get) }
    }

    private fun given(
        state: State,
        more: Int,
        step: Int,
    ): List<Int> = state.specs.filter { it.isCache }.sortedBy { it.layer }.map { state.slotsGiven(it, more, step) }

    @Test
    fun `each cache is given what its own layer has in use`() {
        assertEquals(listOf(110, 110, 90, 90), given(state(listOf(100, 80)), more = 10, step = 1))
    }

    @Test
    fun `a multiple of the step`() {
        assertEquals(listOf(128, 128, 64, 64), given(state(listOf(64, 63)), more = 1, step = 64))
    }

    @Test
    fun `never more than the layer's own capacity`() {
        assertEquals(listOf(200, 200, 150, 150), given(state(listOf(193, 143)), more = 7, step = 64))
    }
}
