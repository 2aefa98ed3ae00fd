package io.edgeinfinite.onnx

import io.edgeinfinite.core.Autosave
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Model
import io.edgeinfinite.core.Sampler
import io.edgeinfinite.core.SamplingOptions
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.nio.file.Path
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger

/** What an app holds: a model whose functions suspend, whatever the engine does meanwhile. */
class ModelTest {
    @TempDir
    lateinit var folder: Path

    private val recorded = Recorded("reencode")

    private fun greedy() = Sampler(SamplingOptions())

    private fun file(name: String): File = folder.resolve(name).toFile()

    private suspend fun open(engines: Watched = Watched()) = Model.open(recorded.artifact, listOf(engines))

    @Test
    fun `opening, reading, answering, saving, restoring and closing leave the caller's thread free`() {
        val beats = AtomicInteger()
        val blocked = ArrayList<String>()
        // Every call of the engine lasts until the caller's thread has done something else meanwhile.
        val engines =
            Watched { call ->
                val end = System.nanoTime() + PATIENCE
                val before = beats.get()
                while (beats.get() == before && System.nanoTime() < end) Thread.sleep(1)
                if (beats.get() == before) blocked += call
            }
        Executors.newSingleThreadExecutor { Thread(it, "caller") }.asCoroutineDispatcher().use { caller ->
            runBlocking(caller) {
                val heart =
                    launch {
                        while (true) {
                            beats.incrementAndGet()
                            delay(1)
                        }
                    }
                val model = open(engines)
                val chat = model.newConversation(undoSteps = 1)
                chat.attach("notes", "word ".repeat(30)).toList()
                chat.ask("What?", greedy(), 3).toList()
                chat.undo()
                chat.save(file("chat"))
                chat.close()
                model.restoreConversation(file("chat"), Autosave(file("auto"))).figures()
                model.close()
                heart.leave()
            }
        }
        assertEquals(emptyList<String>(), blocked)
        assertEquals(setOf("engine"), engines.threads)
        val calls = setOf("open", "newState", "prefillSegment", "decodeStep", "compressMemory", "close")
        assertEquals(calls, engines.calls.toSet())
    }

    @Test
    fun `its conversations answer as the engine alone does`() =
        runBlocking {
            val model = open()
            val chat = model.newConversation()
            val answer = chat.ask("Hello", greedy(), 12).toList().last() as GenerationEvent.Finished
            chat.save(file("chat"))
            val restored = model.restoreConversation(file("chat"))
            assertEquals(listOf("Hello", answer.text), restored.turns.map { it.text })
            assertEquals(chat.figures(), restored.figures())
            assertEquals("onnx", model.engineName)
            model.close()
        }

    @Test
    fun `an answer without a sampler is chosen as the checkpoint recommends`() =
        runBlocking {
            val artifact = file("artifact").also { recorded.artifact.copyRecursively(it) }
            val settings = """{"do_sample": false, "repetition_penalty": 3.0, "eos_token_id": 2}"""
            // As long as before, as the manifest says.
            File(artifact, "generation_config.json").run { writeText(settings.padEnd(length().toInt())) }
            val model = Model.open(artifact, listOf(OnnxEngineFactory()), checkFiles = false)
            val answers =
                listOf(null, Sampler(SamplingOptions(repetitionPenalty = 3.0)), greedy()).map { sampler ->
                    val chat = model.newConversation()
                    chat.save(file("chat"))
                    val restored = model.restoreConversation(file("chat"))
                    listOf(chat, restored).map { one ->
                        (one.ask("Hello", sampler, 12).toList().last() as GenerationEvent.Finished).text
                    }
                }
            assertEquals(answers[1], answers[0])
            assertNotEquals(answers[2], answers[0])
            model.close()
        }

    @Test
    fun `closing amid an answer ends it, and the engine is called no more`() =
        runBlocking {
            val engines = Watched()
            val model = open(engines)
            val chat = model.newConversation()
            val begun = CompletableDeferred<Unit>()
            var last: GenerationEvent? = null
            val answering =
                launch {
                    chat.attach("a book", "word ".repeat(4000)).collect {
                        last = it
                        begun.complete(Unit)
                    }
                }
            begun.await()
            model.close()
            answering.join()
            assertTrue((last as GenerationEvent.Reading).let { it.read < it.total })
            assertEquals("close", engines.calls.last())
        }

    @Test
    fun `what was closed refuses in one line, and may be closed again`() =
        runBlocking {
            val model = open()
            val closed = model.newConversation()
            val open = model.newConversation()
            closed.close()
            closed.close()
            assertEquals(ErrorCode.CLOSED, assertThrows<EdgeInfiniteException> { closed.figures() }.code)
            assertEquals(0, open.figures().tokensRead)
            model.close()
            model.close()
            val refusals =
                listOf(
                    assertThrows<EdgeInfiniteException> { open.ask("x", greedy()).toList() },
                    assertThrows<EdgeInfiniteException> { open.save(file("x")) },
                    assertThrows<EdgeInfiniteException> { model.newConversation() },
                    assertThrows<EdgeInfiniteException> { model.restoreConversation(file("x")) },
                )
            assertEquals(setOf(ErrorCode.CLOSED), refusals.map { it.code }.toSet())
        }

    @Test
    fun `an opening that is cancelled frees the weights`() =
        runBlocking {
            val isOpening = CompletableDeferred<Unit>()
            val mayOpen = CountDownLatch(1)
            val engines =
                Watched {
                    if (it == "open") {
                        isOpening.complete(Unit)
                        mayOpen.await()
                    }
                }
            val opening = launch(Dispatchers.Default) { open(engines) }
            isOpening.await()
            opening.leave()
            mayOpen.countDown()
            opening.cancelAndJoin()
            assertEquals(listOf("open", "close"), engines.calls.toList())
        }

    @Test
    fun `sessions that can't be restored have codes`() =
        runBlocking {
            val model = open()
            val other = Model.open(Recorded("no-gate").artifact, listOf(OnnxEngineFactory()))
            file("damaged").writeText("no session")
            other.newConversation().let { chat ->
                chat.ask("x", greedy(), 1).toList()
                chat.save(file("other"))
            }
            val expected =
                mapOf(
                    "missing" to ErrorCode.SESSION_MISSING,
                    "damaged" to ErrorCode.SESSION_DAMAGED,
                    "other" to ErrorCode.SESSION_OF_ANOTHER_MODEL,
                )
            for ((name, code) in expected) {
                val error = assertThrows<EdgeInfiniteException> { model.restoreConversation(file(name)) }
                assertEquals(code, error.code, error.message)
            }
            other.close()
            model.close()
        }

    @Test
    fun `an artifact of a back end that isn't built in is refused, before a thread is left behind`() =
        runBlocking {
            val error = assertThrows<EdgeInfiniteException> { Model.open(recorded.artifact, emptyList()) }
            assertEquals(ErrorCode.NO_ENGINE, error.code)
        }

    /** With a cause: without one, a method of the interface is called, and the dex's interfaces have none. */
    private fun Job.leave() = cancel(CancellationException("the caller went away"))

    private companion object {
        /** Nanoseconds until a caller counts as blocked. */
        const val PATIENCE = 20_000_000_000L
    }
}
