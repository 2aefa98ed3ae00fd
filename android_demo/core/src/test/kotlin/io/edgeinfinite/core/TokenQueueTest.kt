package io.edgeinfinite.core

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import java.util.Random

class TokenQueueTest {
    @Test
    fun `it holds what a list would hold after any additions and removals`() {
        val random = Random(1)
        repeat(50) {
            val queue = TokenQueue()
            val list = ArrayList<Int>()
            repeat(100) {
                val more = IntArray(random.nextInt(90)) { random.nextInt() }
                when (random.nextInt(5)) {
                    0 -> queue.addFirst(more).also { list.addAll(0, more.toList()) }
                    1, 2 -> queue.addLast(more).also { list.addAll(more.toList()) }
                    3 -> {
                        val count = random.nextInt(list.size + 1)
                        assertEquals(list.take(count), queue.first(count).toList())
                        queue.removeFirst(count)
                        list.subList(0, count).clear()
                    }
                    else -> if (random.nextInt(9) == 0) queue.clear().also { list.clear() }
                }
                assertEquals(list, queue.toIntArray().toList())
                assertEquals(list.drop(7), queue.toIntArray(from = 7).toList())
                assertEquals(list.isEmpty(), queue.isEmpty())
            }
        }
    }
}
