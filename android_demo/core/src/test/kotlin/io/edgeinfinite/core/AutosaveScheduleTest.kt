package io.edgeinfinite.core

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import java.io.File

/** When a running operation is saved. */
class AutosaveScheduleTest {
    private var now = 100.0
    private var costS = 0.0
    private val savedAt = ArrayList<Double>()
    private val autosave = Autosave(File("unused"), pauseS = 10.0, clock = { now }) { savedAt += now }

    /** Asks at every second until [end]. */
    private fun runUntil(end: Double) {
        while (now < end) {
            autosave.saveIfDue(emptyList()) { now += costS }
            now += 1
        }
    }

    @Test
    fun `nothing is saved before the pause is over, then at each pause`() {
        autosave.begin()
        runUntil(135.0)
        assertEquals(listOf(110.0, 120.0, 130.0), savedAt)
    }

    @Test
    fun `a save that takes long is followed by a longer pause`() {
        costS = 2.0
        autosave.begin()
        runUntil(160.0)
        assertEquals(listOf(112.0, 154.0), savedAt)
    }

    @Test
    fun `a save that is asked for comes at once, and only once`() {
        autosave.begin()
        runUntil(103.0)
        autosave.request()
        runUntil(108.0)
        assertEquals(listOf(103.0), savedAt)
    }

    @Test
    fun `what was asked for while nothing ran is forgotten`() {
        autosave.request()
        autosave.begin()
        runUntil(105.0)
        assertEquals(emptyList<Double>(), savedAt)
    }

    @Test
    fun `a save that fails is tried again after the pause`() {
        autosave.begin()
        now = 111.0
        autosave.saveIfDue(emptyList()) { throw EdgeInfiniteException("the storage is full") }
        assertEquals(emptyList<Double>(), savedAt)
        runUntil(125.0)
        assertEquals(listOf(121.0), savedAt)
    }
}
