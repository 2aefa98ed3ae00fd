package io.edgeinfinite.core

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import kotlin.coroutines.CoroutineContext

/** The engine's thread: one, and with room for native code. */
class EngineDispatcherTest {
    @Test
    fun `its stack is several times as deep as a coroutine worker's`() =
        runBlocking {
            EngineDispatcher().use { engine ->
                depthOn(engine) // the first one is interpreted: frames of another size
                val worker = depthOn(Dispatchers.Default)
                val deep = depthOn(engine)
                assertTrue(deep > 3 * worker, "$deep frames against $worker")
            }
        }

    @Test
    fun `everything runs on one thread, in the order of its arrival`() =
        runBlocking {
            val threads = HashSet<Thread>()
            val order = ArrayList<Int>()
            EngineDispatcher("one").use { engine ->
                val jobs =
                    List(200) { index ->
                        launch(engine) {
                            threads += Thread.currentThread()
                            order += index
                        }
                    }
                jobs.forEach { it.join() }
            }
            // In a test the thread's name ends with the coroutine that it runs, and the last one may
            // still be handing it back.
            assertEquals(listOf("one"), threads.map { it.name.substringBefore(" @coroutine#") })
            assertEquals(List(200) { it }, order)
        }

    private suspend fun depthOn(context: CoroutineContext): Int =
        withContext(context) {
            var deepest = 0

            fun descend(depth: Int) {
                deepest = depth
                descend(depth + 1)
            }
            try {
                descend(0)
            } catch (_: StackOverflowError) {
                // as deep as it goes
            }
            deepest
        }
}
