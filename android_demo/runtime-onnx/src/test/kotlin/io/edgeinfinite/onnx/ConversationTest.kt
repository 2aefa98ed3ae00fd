package io.edgeinfinite.onnx

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.FinishReason
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Generator
import io.edgeinfinite.core.Message
import io.edgeinfinite.core.Sampler
import io.edgeinfinite.core.SamplingOptions
import io.edgeinfinite.core.Session
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.cancel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows

/** Answers as a flow, with a real artifact of a random model, which emits bytes of all kinds. */
class ConversationTest : ConversationTests("reencode") {
    private fun sampler(seed: Long) = Sampler(SamplingOptions(temperature = 3.0, seed = seed))

    @Test
    fun `an answer is the greedy continuation of the rendered chat`() =
        runBlocking {
            val expected = ArrayList<Int>()
            Session(engine).use { session ->
                var logits = session.append(tokenizer.encodeChat(listOf(Message(Message.USER, "Hello"))))
                while (expected.size < 20) {
                    val token = logits.indices.maxByOrNull { logits[it] }!!
                    if (token in tokenizer.stopIds) break
                    expected += token
                    logits = session.append(intArrayOf(token))
                }
            }
            conversation().use { chat ->
                val events = chat.ask("Hello", greedy(), 20).toList()
                val finished = events.last() as GenerationEvent.Finished
                assertEquals(expected, finished.statistics.tokenIds)
                assertEquals(expected, events.filterIsInstance<GenerationEvent.Piece>().map { it.token })
                assertEquals(finished.text, chat.turns.last().text)
                assertTrue(finished.statistics.ttftS!! > 0)
            }
        }

    @Test
    fun `no piece ends in half a character and the pieces are the whole text`() =
        runBlocking {
            var characters = 0
            repeat(20) { seed ->
                conversation().use { chat ->
                    val events = chat.ask("x", sampler(seed.toLong()), 60).toList()
                    val finished = events.last() as GenerationEvent.Finished
                    val pieces = events.filterIsInstance<GenerationEvent.Piece>().map { it.text }
                    // Bytes that no character has are shown; half a character never is.
                    val shown = pieces.joinToString("")
                    assertTrue(finished.text.startsWith(shown))
                    val whole = tokenizer.decode(finished.statistics.tokenIds.toIntArray())
                    assertTrue(whole.startsWith(shown.trimEnd('\uFFFD')))
                    assertEquals(whole.trimEnd('\uFFFD'), finished.text.trimEnd('\uFFFD'))
                    characters += pieces.count { it.isNotEmpty() }
                }
            }
            assertTrue(characters > 100)
        }

    @Test
    fun `reading reports every chunk and adds up`() =
        runBlocking {
            conversation().use { chat ->
                val events = chat.attach("a book", "word ".repeat(200)).toList()
                assertEquals(events.last().total, events.last().read)
                assertEquals(events.map { it.read }.sorted(), events.map { it.read })
                assertTrue(events.size > 100 && events.last().session.compressions > 10)
                assertEquals(1, events.map { it.session.stateBytes }.toSet().size)
                val answer = chat.ask("What is it about?", greedy(), 5).toList().last()
                assertTrue(answer is GenerationEvent.Finished)
                assertEquals(
                    listOf(Turn.Kind.DOCUMENT, Turn.Kind.USER, Turn.Kind.ASSISTANT),
                    chat.turns.map { it.kind },
                )
            }
        }

    @Test
    fun `a document and its question are read as one turn`() =
        runBlocking {
            val whole = tokenizer.encodeChat(listOf(Message(Message.USER, "text\n\nWhy?")))
            val expected = Session(engine).use { session ->
                session.append(whole).let { session.residual.toIntArray() }
            }
            conversation().use { chat ->
                chat.attach("t", "text").toList()
                chat.ask("Why?", greedy(), 1).toList()
                val read = chat.session.residual.toIntArray()
                assertEquals(expected.toList(), read.take(expected.size))
            }
        }

    @Test
    fun `stop ends reading within one chunk, and asking goes on`() =
        runBlocking {
            conversation().use { chat ->
                var stoppedAt = 0L
                chat.attach("a book", "word ".repeat(2000)).collect {
                    if (it.read >= 40 && stoppedAt == 0L) {
                        chat.stop()
                        stoppedAt = chat.session.tokensRead
                    }
                }
                // The chunk that was being read when `stop` returned is the last one.
                assertTrue(chat.session.tokensRead in stoppedAt..stoppedAt + 5)
                assertTrue(chat.unreadTokens > 900)
                chat.dropUnread()
                assertEquals(0, chat.unreadTokens)
                assertTrue(chat.ask("And?", greedy(), 3).toList().last() is GenerationEvent.Finished)
            }
        }

    @Test
    fun `stop ends an answer with an event and what was said is in the text`() =
        runBlocking {
            conversation().use { chat ->
                var pieces = 0
                val events =
                    chat.ask("x", greedy(), 200).onEach {
                        if (it is GenerationEvent.Piece && ++pieces == 3) chat.stop()
                    }.toList()
                val finished = events.last() as GenerationEvent.Finished
                assertEquals(FinishReason.CANCELLED, finished.reason)
                // The flow hands pieces over without waiting for the one who stops.
                assertTrue(finished.statistics.newTokens in 3..70)
                assertEquals(finished.text, chat.turns.last().text)
                assertTrue(chat.ask("more", greedy(), 3).toList().last() is GenerationEvent.Finished)
            }
        }

    @Test
    fun `cancelling the collector stops within one chunk and leaves the session sound`() =
        runBlocking {
            Session(engine, chunkLength = 5).use { session ->
                val tokens = IntArray(400) { 3 + it % 200 }
                val generator = Generator(session, tokenizer, tokens, greedy(), 3)
                generator.events().take(2).toList()
                assertEquals(10, session.tokensRead)
                assertEquals(390, session.unread.size)
                Generator(session, tokenizer, IntArray(0), greedy(), 3).events().toList()
                assertTrue(session.tokensRead in 400..403)
                assertTrue(session.unread.size <= 1) // the last token of an answer that was cut
            }
        }

    @Test
    fun `a cancelled coroutine stops what computes on another thread`() =
        runBlocking {
            conversation(chunkLength = 1).use { chat ->
                try {
                    coroutineScope {
                        launch {
                            chat.attach("a book", "word ".repeat(4000)).collect { if (it.read > 50) cancel() }
                        }
                    }
                } catch (_: CancellationException) {
                    // What cancelling looks like to the one who waits.
                }
                val figures = chat.figures() // waits for the reader to stop
                assertTrue(figures.tokensRead < 1000 && figures.unreadTokens > 15_000, "$figures")
            }
        }

    @Test
    fun `a saved conversation goes on with its history and its open document`() =
        runBlocking {
            val file = file("chat")
            val straight =
                conversation().use { chat ->
                    chat.ask("Hi", greedy(), 5).toList()
                    chat.attach("notes", "some notes").toList()
                    chat.save(file)
                    chat.ask("What?", greedy(), 12).answer().text
                }
            restored(file).use { chat ->
                assertEquals(listOf("Hi", "notes"), chat.turns.map { it.text }.filter { it in listOf("Hi", "notes") })
                val answer = chat.ask("What?", greedy(), 12).answer()
                assertEquals(straight, answer.text)
            }
        }

    @Test
    fun `an appended turn continues the conversation token by token as it would be rendered`() =
        runBlocking {
            conversation().use { chat ->
                chat.ask("One", greedy(), 4).toList()
                val answer = chat.turns.last().text
                chat.ask("Two", greedy(), 1).toList()
                val rendered =
                    tokenizer.encodeChat(
                        listOf(Message("user", "One"), Message("assistant", "@"), Message("user", "Two")),
                    )
                assertTrue(chat.session.tokensRead >= rendered.size - 1, answer)
            }
        }

    @Test
    fun `empty texts and questions are refused`() =
        runBlocking {
            conversation().use { chat ->
                val refused =
                    mapOf(
                        ErrorCode.EMPTY_TEXT to listOf(chat.attach("n", " \n"), chat.ask(" ", greedy())),
                        ErrorCode.INVALID_ARGUMENT to listOf(chat.ask("x", greedy(), 0)),
                    )
                for ((code, flows) in refused) {
                    for (flow in flows) {
                        assertEquals(code, assertThrows<EdgeInfiniteException> { flow.toList() }.code)
                    }
                }
            }
        }
}
