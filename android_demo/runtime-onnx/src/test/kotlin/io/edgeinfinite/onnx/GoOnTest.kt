package io.edgeinfinite.onnx

import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.FinishReason
import io.edgeinfinite.core.RepetitionDetection
import io.edgeinfinite.core.Sampler
import io.edgeinfinite.core.SamplingOptions
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows

/** An answer that was cut as too long goes on as if it had never been cut. */
class GoOnTest : ConversationTests("carry-recall") {
    /** Greedy but for what was said, and over letters alone, whose tokens a text gives back. */
    private fun counting(): Sampler {
        val bias = tokenizer.encodeText("abcdefgh").associateWith { 100.0 }
        return Sampler(SamplingOptions(frequencyPenalty = 0.5, logitBias = bias))
    }

    private suspend fun wholeAnswer(sampler: Sampler = greedy()) =
        conversation().use { chat -> chat.ask("Tell", sampler, LONG).answer() }

    private suspend fun Conversation.askInPieces(sampler: Sampler = greedy()): String {
        assertEquals(FinishReason.LENGTH, ask("Tell", sampler, SHORT).answer().reason)
        var added = SHORT
        while (added < LONG) {
            assertTrue(canGoOn)
            added += goOn(sampler, minOf(SHORT, LONG - added)).answer().statistics.newTokens
        }
        return turns.last().text
    }

    @Test
    fun `the pieces are the whole answer, and one turn`() =
        runBlocking {
            conversation().use { chat ->
                assertEquals(wholeAnswer().text, chat.askInPieces())
                assertEquals(listOf(Turn.Kind.USER, Turn.Kind.ASSISTANT), chat.turns.map { it.kind })
            }
        }

    @Test
    fun `what was said before the cut counts for penalties`() =
        runBlocking {
            val whole = wholeAnswer(counting())
            conversation().use { assertEquals(whole.text, it.askInPieces(counting())) }
            assertTrue(whole.text.toSet().size > 4, whole.text)
        }

    @Test
    fun `the next turn reads the same tokens as without a cut`() =
        runBlocking {
            val answers =
                listOf(LONG, SHORT).map { longest ->
                    conversation().use { chat ->
                        chat.ask("Tell", greedy(), longest).toList()
                        if (longest < LONG) chat.goOn(greedy(), LONG - longest).toList()
                        chat.ask("And then?", greedy(), SHORT).answer().text to chat.session.tokensRead
                    }
                }
            assertEquals(answers[0], answers[1])
        }

    @Test
    fun `a saved conversation goes on with it, and one that asks instead leaves it`() =
        runBlocking {
            val whole = wholeAnswer().text
            conversation().use { chat ->
                chat.ask("Tell", greedy(), SHORT).toList()
                chat.save(file("cut"))
            }
            restored(file("cut")).use { chat ->
                assertTrue(chat.canGoOn)
                assertFalse(chat.isInterrupted)
                assertEquals(0, chat.unreadTokens)
                chat.readOn().toList()
                chat.dropUnread()
                chat.goOn(greedy(), LONG - SHORT).toList()
                assertEquals(whole, chat.turns.last().text)
            }
            restored(file("cut")).use { chat ->
                chat.ask("Something else", greedy(), 1).toList()
                assertEquals(4, chat.turns.size)
            }
        }

    @Test
    fun `undo takes all of it back`() =
        runBlocking {
            conversation(undoSteps = 2).use { chat ->
                val expected = chat.askInPieces()
                assertEquals(listOf("Tell", expected), chat.undo().map { it.text })
                assertFalse(chat.canGoOn)
                assertEquals(0L, chat.session.tokensRead)
                assertEquals(expected, chat.askInPieces())
            }
        }

    @Test
    fun `a character that the cut splits is completed`() =
        runBlocking {
            conversation().use { chat ->
                for (token in tokenizer.encodeText(CHARACTERS)) {
                    val only = Sampler(SamplingOptions(logitBias = mapOf(token to 1e6)))
                    val flow = if (chat.turns.isEmpty()) chat.ask("?", only, 1) else chat.goOn(only, 1)
                    assertEquals(listOf(token), flow.answer().statistics.tokenIds)
                }
                assertEquals(CHARACTERS, chat.turns.last().text)
            }
        }

    @Test
    fun `an answer that repeats itself ends with all of it read`() =
        runBlocking {
            val bias = mapOf(tokenizer.encodeText("a").first() to 1e6)
            val ends = RepetitionDetection(maxPatternSize = 4, minPatternSize = 2, minCount = 3)
            assertEquals(FinishReason.LENGTH, wholeAnswer(Sampler(SamplingOptions(logitBias = bias))).reason)
            conversation().use { chat ->
                val sampler = Sampler(SamplingOptions(logitBias = bias, repetitionDetection = ends))
                val ended = chat.ask("Tell", sampler, LONG).answer()
                assertEquals(FinishReason.REPETITION, ended.reason)
                assertEquals("aaaaaa", ended.text)
                assertEquals(6, ended.statistics.tokenIds.size)
                assertRefused(chat)
            }
        }

    @Test
    fun `an answer that ended by itself doesn't go on`() =
        runBlocking {
            conversation().use { chat ->
                assertRefused(chat)
                val ends = Sampler(SamplingOptions(logitBias = mapOf(tokenizer.stopIds.first() to 1e6)))
                assertEquals(FinishReason.STOP, chat.ask("Tell", ends, LONG).answer().reason)
                assertRefused(chat)
                chat.attach("notes", "some notes").toList()
                assertRefused(chat)
            }
        }

    private fun assertRefused(chat: Conversation) {
        assertFalse(chat.canGoOn)
        val error = assertThrows<EdgeInfiniteException> { runBlocking { chat.goOn(greedy()).toList() } }
        assertEquals(ErrorCode.INVALID_ARGUMENT, error.code)
    }

    private companion object {
        /** Of one, two and four bytes, each of them a token. */
        const val CHARACTERS = "aé🙂"
        const val SHORT = 7
        const val LONG = 24
    }
}
