package io.edgeinfinite.onnx

import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.File

/** What one side has read of a message, the other side goes on with; see tests/android/sessions.py. */
class OpenSessionTest : ConversationTests("carry-recall") {
    private val written = File(Recorded.fixtures, "sessions/carry-recall")
    private val open = Json.parseToJsonElement(File(written, "open.json").readText()).jsonObject
    private val document = open.getValue("document").jsonPrimitive.content
    private val question = open.getValue("question").jsonPrimitive.content
    private val turn = open.getValue("turn").jsonArray.map { it.jsonPrimitive.int }

    /** Asks about the document, and compares the tokens read for the question. */
    private suspend fun assertAsked(chat: Conversation) {
        val before = chat.session.tokensRead
        chat.ask(question, greedy(), 1).toList()
        val answer = (chat.session.tokensRead - before - turn.size).toInt()
        assertTrue(answer in 0..1, "$answer tokens more than the question's")
        // A compression can take the first of them out of the residual.
        val read = chat.session.residual.toIntArray().toList().dropLast(answer).takeLast(turn.size)
        assertEquals(turn.takeLast(read.size), read)
    }

    @Test
    fun `a document that Python read is asked about as in Python`() =
        runBlocking {
            val file = File(written, "open.session")
            restored(file).use { chat ->
                assertEquals(listOf(Turn(Turn.Kind.DOCUMENT, "The Lighthouse")), chat.turns)
                assertAsked(chat)
            }
        }

    @Test
    fun `a document that Kotlin read is saved for Python to ask about`() =
        runBlocking {
            val file = recorded.output("open.session")
            conversation(chunkLength = null).use { chat ->
                chat.attach("notes", document).toList()
                chat.save(file)
            }
            restored(file).use { chat ->
                assertEquals(listOf(Turn(Turn.Kind.DOCUMENT, "notes")), chat.turns)
                assertAsked(chat)
            }
        }

    @Test
    fun `what Python noted about the document is kept`() =
        runBlocking {
            val copy = recorded.output("kept.session")
            Conversation.restore(engine, tokenizer, File(written, "open.session"), dispatcher).use { it.save(copy) }
            Conversation.restore(engine, tokenizer, copy, dispatcher).use { chat ->
                assertEquals(listOf(Turn(Turn.Kind.DOCUMENT, "The Lighthouse")), chat.turns)
                assertAsked(chat)
            }
        }
}
