package io.edgeinfinite.onnx

import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.FinishReason
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Generator
import io.edgeinfinite.core.Message
import io.edgeinfinite.core.Sampler
import io.edgeinfinite.core.SamplingOptions
import io.edgeinfinite.core.Session
import io.edgeinfinite.core.SessionFile
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** Turns taken back, and answers that end before a stop string. */
class UndoAndStopTest : ConversationTests("carry-recall") {
    private fun content(session: Session): ByteArray {
        val file = file("content")
        SessionFile.save(session, file)
        return file.readBytes()
    }

    /** Letters a and b alone, so that stop strings of a random model's answer can be chosen. */
    private fun letters(): Sampler {
        val bias = tokenizer.encodeText("ab").associateWith { 100.0 }
        return Sampler(SamplingOptions(temperature = 1.0, seed = 5, logitBias = bias))
    }

    private suspend fun ask(
        session: Session,
        stop: List<String>,
    ): Pair<List<GenerationEvent.Piece>, GenerationEvent.Finished> {
        val prompt = tokenizer.encodeChat(listOf(Message(Message.USER, "?")))
        val events = Generator(session, tokenizer, prompt, letters(), 30, stop).events().toList()
        return events.filterIsInstance<GenerationEvent.Piece>() to events.last() as GenerationEvent.Finished
    }

    @Test
    fun `a conversation reads its system message with the first turn, also again after undo`() =
        runBlocking {
            val system = "Be brief."
            conversation(undoSteps = 1, system = system).use { chat ->
                val messages = listOf(Message(Message.SYSTEM, system), Message(Message.USER, "One"))
                val expected = tokenizer.encodeChat(messages).size.toLong()
                repeat(2) {
                    val events = chat.ask("One", greedy(), 4).toList()
                    val read = events.filterIsInstance<GenerationEvent.Reading>().last()
                    assertEquals(expected, read.total)
                    chat.undo()
                }
            }
        }

    @Test
    fun `undo restores session and history, turn by turn, as far as the ring goes`() =
        runBlocking {
            conversation(undoSteps = 2).use { chat ->
                assertEquals(emptyList<Turn>(), chat.undo())
                chat.ask("One", greedy(), 4).toList()
                val first = content(chat.session) to chat.turns
                chat.attach("notes", "some notes ".repeat(9)).toList()
                val second = content(chat.session) to chat.turns
                val straight = chat.ask("Two", greedy(), 9).answer().text
                assertEquals(2, chat.undoable)

                assertEquals(listOf("Two", straight), chat.undo().map { it.text })
                assertArrayEquals(second.first, content(chat.session))
                assertEquals(second.second, chat.turns)
                val again = chat.ask("Two", greedy(), 9).answer().text
                assertEquals(straight, again)

                chat.undo()
                assertEquals(listOf(Turn(Turn.Kind.DOCUMENT, "notes")), chat.undo())
                assertArrayEquals(first.first, content(chat.session))
                assertEquals(first.second, chat.turns)
                assertEquals(emptyList<Turn>(), chat.undo())
            }
        }

    @Test
    fun `a ring of a negative size is refused`() {
        Session(engine).use { session ->
            assertThrows(EdgeInfiniteException::class.java) {
                Conversation(session, tokenizer, dispatcher, undoSteps = -1)
            }
        }
    }

    @Test
    fun `an answer ends before a stop string, and so does what was read`() =
        runBlocking {
            val free = Session(engine, 5).use { ask(it, emptyList()).second.text }
            assertTrue(Regex("[ab]{30}").matches(free), free)
            for (length in listOf(1, 2, 3, 5)) {
                for (start in listOf(0, 4, 11)) {
                    val stop = free.substring(start, start + length)
                    Session(engine, 5).use { session ->
                        val (pieces, finished) = ask(session, listOf("not there", stop))
                        assertEquals(free.substringBefore(stop), finished.text)
                        assertEquals(FinishReason.STOP, finished.reason)
                        assertTrue(finished.text.startsWith(pieces.joinToString("") { it.text }))
                        val told = finished.statistics.tokenIds
                        assertEquals(finished.text, tokenizer.decode(told.toIntArray()))
                        Session(engine, 5).use { alone ->
                            alone.append(tokenizer.encodeChat(listOf(Message(Message.USER, "?"))))
                            told.forEach { alone.append(intArrayOf(it)) }
                            assertSameSession(alone, session, "$stop after ${finished.text}")
                        }
                    }
                }
            }
        }

    @Test
    fun `stop strings that don't come change nothing`() =
        runBlocking {
            val (free, held) = List(2) { Session(engine, 5) }
            val text = ask(free, emptyList()).second.text
            assertEquals(text, ask(held, listOf(text.takeLast(3) + "!", "aab!", "ba!")).second.text)
            assertArrayEquals(content(free), content(held))
            listOf(free, held).forEach { it.close() }
        }
}
