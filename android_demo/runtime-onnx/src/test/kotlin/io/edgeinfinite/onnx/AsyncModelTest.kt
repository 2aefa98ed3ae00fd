package io.edgeinfinite.onnx

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Sampler
import io.edgeinfinite.core.SamplingOptions
import io.edgeinfinite.core.async.AsyncModel
import io.edgeinfinite.core.async.EventListener
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertInstanceOf
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir
import java.nio.file.Path
import java.util.Collections
import java.util.concurrent.CountDownLatch
import java.util.concurrent.ExecutionException
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit

/** The library without coroutines: futures and listeners on the caller's executor. */
class AsyncModelTest {
    @TempDir
    lateinit var folder: Path

    private val recorded = Recorded("reencode")
    private val sampler = Sampler(SamplingOptions())

    /** What a listener heard, and on which threads. */
    private class Heard<E> : EventListener<E> {
        val events: MutableList<E> = Collections.synchronizedList(ArrayList())
        val threads: MutableSet<String> = Collections.synchronizedSet(HashSet())
        private val over = CountDownLatch(1)
        var error: Throwable? = null
        var ends = 0

        override fun onEvent(event: E) {
            threads += threadName()
            events += event
        }

        override fun onEnd() {
            threads += threadName()
            ends += 1
            over.countDown()
        }

        override fun onError(error: Throwable) {
            threads += threadName()
            this.error = error
            over.countDown()
        }

        fun await() = apply { assertTrue(over.await(1, TimeUnit.MINUTES)) }
    }

    private fun withModel(use: (AsyncModel) -> Unit) {
        val main = Executors.newSingleThreadExecutor { Thread(it, "main-like") }
        try {
            val model = AsyncModel.open(recorded.artifact, listOf(OnnxEngineFactory()), main).get()
            use(model)
            model.close().get()
        } finally {
            main.shutdown()
        }
    }

    @Test
    fun `events come in order on the executor, and the end after them`() =
        withModel { model ->
            val chat = model.newConversation().get()
            val reading = Heard<GenerationEvent>()
            chat.attach("notes", "word ".repeat(40), reading)
            assertEquals(1, reading.await().ends)
            assertInstanceOf(GenerationEvent.Reading::class.java, reading.events.last())
            val answer = Heard<GenerationEvent>()
            chat.ask("What?", sampler, answer, 5)
            val finished = answer.await().events.last() as GenerationEvent.Finished
            assertEquals(chat.turns.last().text, finished.text)
            assertEquals(setOf("main-like"), reading.threads + answer.threads)
        }

    @Test
    fun `what is refused reaches the listener with its code, and futures as their cause`() =
        withModel { model ->
            val chat = model.newConversation().get()
            val heard = Heard<GenerationEvent>()
            chat.ask(" ", sampler, heard)
            val error = heard.await().error as EdgeInfiniteException
            assertEquals(ErrorCode.EMPTY_TEXT to 0, error.code to heard.ends)
            val missing = model.restoreConversation(folder.resolve("none").toFile())
            val cause = assertThrows<ExecutionException> { missing.get() }.cause as EdgeInfiniteException
            assertEquals(ErrorCode.SESSION_MISSING, cause.code)
        }

    @Test
    fun `a stopped reading is saved and goes on`() =
        withModel { model ->
            val file = folder.resolve("chat").toFile()
            val chat = model.newConversation().get()
            val reading = Heard<GenerationEvent>()
            chat.attach("a book", "word ".repeat(3000), reading)
            while (reading.events.isEmpty()) Thread.sleep(1)
            chat.stop()
            reading.await()
            chat.save(file).get()
            val unread = chat.figures().get().unreadTokens
            assertTrue(unread > 0)
            chat.close().get()
            val restored = model.restoreConversation(file).get()
            val rest = Heard<GenerationEvent.Reading>()
            restored.readOn(rest)
            assertEquals(unread.toLong(), rest.await().events.last().read)
        }
}
