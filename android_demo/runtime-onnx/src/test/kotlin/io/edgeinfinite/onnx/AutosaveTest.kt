package io.edgeinfinite.onnx

import io.edgeinfinite.core.Autosave
import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.File

/** What a process that is killed in the middle of something leaves on disk, and how it goes on. */
class AutosaveTest : ConversationTests("reencode") {
    private suspend fun Conversation.answer() = ask("What?", greedy(), ANSWER).answer().text

    /** Saves at every step, and keeps the file that the [kept]th save leaves. */
    private fun killedAfter(
        kept: Int,
        file: File,
    ): Autosave {
        var saves = 0
        val running = file("running")
        return Autosave(running, pauseS = 0.0, clock = { saves.toDouble() }) {
            if (++saves == kept) running.copyTo(file, overwrite = true)
        }
    }

    @Test
    fun `a reading that was cut off goes on and ends as if it had not been`() =
        runBlocking {
            val text = "some notes, ".repeat(40)
            val expected =
                conversation().use {
                    it.attach("notes", text).toList()
                    it.answer()
                }
            for (kept in listOf(1, 2, 40)) {
                val file = file("killed-$kept")
                conversation(autosave = killedAfter(kept, file)).use { it.attach("notes", text).toList() }
                restored(file).use { restored ->
                    assertTrue(restored.isInterrupted)
                    assertEquals(listOf(Turn(Turn.Kind.DOCUMENT, "notes")), restored.turns)
                    val read = restored.readOn().toList()
                    assertEquals(read.last().total, read.last().read)
                    assertFalse(restored.isInterrupted)
                    assertEquals(expected, restored.answer(), "after save $kept")
                }
            }
        }

    @Test
    fun `an answer that was cut off keeps what was written, and the chat goes on`() =
        runBlocking {
            val whole = conversation().use { it.answer() }
            val file = file("answer")
            conversation(autosave = killedAfter(30, file)).use { it.answer() }
            restored(file).use { restored ->
                val (question, answer) = restored.turns
                assertEquals(Turn(Turn.Kind.USER, "What?"), question)
                assertTrue(answer.text.isNotEmpty() && answer.text.length < whole.length, answer.text)
                assertTrue(whole.startsWith(answer.text.trimEnd('\uFFFD')))
                assertFalse(restored.isInterrupted)
                restored.answer()
                assertEquals(4, restored.turns.size)
            }
        }

    @Test
    fun `a stopped reading isn't interrupted, an interrupted one is, and both are saved so`() =
        runBlocking {
            for (interrupt in listOf(false, true)) {
                val file = file("$interrupt")
                conversation().use { chat ->
                    chat.attach("a book", "word ".repeat(2000)).collect {
                        if (it.read > 20) if (interrupt) chat.interrupt() else chat.stop()
                    }
                    assertEquals(interrupt, chat.isInterrupted)
                    chat.save(file)
                }
                restored(file).use {
                    assertEquals(interrupt, it.isInterrupted)
                    assertTrue(it.unreadTokens > 0)
                    it.dropUnread()
                    assertFalse(it.isInterrupted)
                }
            }
        }

    @Test
    fun `a file that can't be written doesn't end the reading`() =
        runBlocking {
            val nowhere = Autosave(file("no/folder/here"), pauseS = 0.0)
            conversation(autosave = nowhere).use { chat ->
                assertEquals(0, chat.attach("notes", "some notes").toList().size - chunksOf("some notes"))
                assertEquals(0, chat.unreadTokens)
            }
        }

    private fun chunksOf(text: String) = (tokenizer.encodeMore(text).size + CHUNK - 1) / CHUNK

    private companion object {
        const val ANSWER = 60
    }
}
