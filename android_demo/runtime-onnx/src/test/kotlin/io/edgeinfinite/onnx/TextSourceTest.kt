package io.edgeinfinite.onnx

import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.TextPiece
import io.edgeinfinite.core.TextSource
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows

/** Texts that are read piece by piece. */
class TextSourceTest : ConversationTests("reencode") {
    /** Paragraphs, one a piece; counts what is asked for. */
    private class Paragraphs(
        private val paragraphs: List<String>,
    ) : TextSource {
        val asked = ArrayList<Long>()
        override val length: Long = paragraphs.size.toLong()

        override fun pieceAt(offset: Long): TextPiece? {
            asked += offset
            return paragraphs.getOrNull(offset.toInt())?.let { TextPiece(it, offset + 1) }
        }
    }

    private val paragraphs = List(COUNT) { "Paragraph $it tells of the windmill and of what was buried there." }

    private suspend fun Conversation.answer(): String = ask("Where?", greedy(), 8).answer().text

    private val whole =
        runBlocking {
            conversation(undoSteps = 1).use { chat ->
                chat.attach("book", paragraphs.joinToString("\n\n")).toList()
                chat.session.tokensRead to chat.answer()
            }
        }

    @Test
    fun `pieces that are paragraphs read as the whole text does, and are asked for one by one`() =
        runBlocking {
            val source = Paragraphs(paragraphs)
            conversation(undoSteps = 1).use { chat ->
                var most = 0
                val events = ArrayList<GenerationEvent.Reading>()
                chat.attach("book", source).collect {
                    events += it
                    most = maxOf(most, it.session.unreadTokens)
                }
                assertTrue(most < whole.first / 6, "$most of ${whole.first} tokens wait at once")
                assertEquals((0L..COUNT).toList(), source.asked)
                assertEquals(events.last().total, events.last().read)
                assertTrue(events.all { it.total in whole.first * 8 / 10..whole.first * 12 / 10 }, "$events")
                assertFalse(chat.needsSource)
                assertEquals(whole.first, chat.session.tokensRead)
                assertEquals(1, chat.turns.size)
                assertEquals(whole.second, chat.answer())
            }
        }

    @Test
    fun `a stopped reading is saved with where it stands, and goes on as if it had not been stopped`() =
        runBlocking {
            val file = file("chat")
            conversation(undoSteps = 1).use { chat ->
                chat.attach("book", Paragraphs(paragraphs)).collect { if (it.read > whole.first / 3) chat.interrupt() }
                assertTrue(chat.needsSource && chat.isInterrupted)
                assertTrue(chat.unreadTokens > whole.first / 3, "${chat.unreadTokens}")
                assertRefused { chat.ask("Where?", greedy()).toList() }
                assertRefused { chat.readOn().toList() }
                assertRefused { chat.attach("more", "text").toList() }
                chat.save(file)
            }
            restored(file).use { chat ->
                assertTrue(chat.needsSource && chat.isInterrupted)
                chat.readOn(Paragraphs(paragraphs)).toList()
                assertFalse(chat.needsSource)
                assertEquals(0, chat.unreadTokens)
                assertEquals(whole.first, chat.session.tokensRead)
                assertEquals(whole.second, chat.answer())
            }
        }

    @Test
    fun `the rest can be dropped or taken back with its text`() =
        runBlocking {
            conversation(undoSteps = 1).use { chat ->
                chat.attach("book", Paragraphs(paragraphs)).collect { chat.stop() }
                chat.dropUnread()
                assertFalse(chat.needsSource)
                chat.answer()
                chat.attach("book", Paragraphs(paragraphs)).collect { chat.stop() }
                assertTrue(chat.needsSource)
                assertEquals(listOf("book"), chat.undo().map { it.text })
                assertFalse(chat.needsSource)
                assertEquals(0, chat.unreadTokens)
                chat.answer()
            }
            Unit
        }

    @Test
    fun `a source without a text is refused`() =
        runBlocking {
            conversation(undoSteps = 1).use { chat ->
                val error =
                    assertThrows<EdgeInfiniteException> { chat.attach("b", Paragraphs(emptyList())).toList() }
                assertEquals(ErrorCode.EMPTY_TEXT, error.code)
                assertFalse(chat.needsSource)
            }
        }

    private suspend fun assertRefused(work: suspend () -> Unit) {
        val error = assertThrows<EdgeInfiniteException> { work() }
        assertEquals(ErrorCode.INVALID_ARGUMENT, error.code)
    }

    private companion object {
        /** A flow runs up to 64 chunks ahead of its collector. */
        const val COUNT = 60
    }
}
