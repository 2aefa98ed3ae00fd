package io.edgeinfinite.onnx

import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.EngineDispatcher
import io.edgeinfinite.core.Sampler
import io.edgeinfinite.core.SamplingOptions
import io.edgeinfinite.core.Session
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestInstance
import java.io.File

/** What one side has read of a message, the other side goes on with; see tests/android/sessions.py. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class OpenSessionTest {
    private val recorded = Recorded("carry-recall")
    private val engine: Engine = recorded.engine()
    private val tokenizer = recorded.tokenizer()
    private val dispatcher = EngineDispatcher()
    private val folder = File(Recorded.fixtures, "sessions/carry-recall")
    private val open = Json.parseToJsonElement(File(folder, "open.json").readText()).jsonObject
    private val document = open.getValue("document").jsonPrimitive.content
    private val question = open.getValue("question").jsonPrimitive.content
    private val turn = open.getValue("turn").jsonArray.map { it.jsonPrimitive.int }

    @AfterAll
    fun close() {
        dispatcher.close()
        engine.close()
    }

    /** Asks about the document, and compares the tokens read for the question. */
    private suspend fun assertAsked(chat: Conversation) {
        val before = chat.session.tokensRead
        chat.ask(question, Sampler(SamplingOptions()), 1).toList()
        val answer = (chat.session.tokensRead - before - turn.size).toInt()
        assertTrue(answer in 0..1, "$answer tokens more than the question's")
        // A compression can take the first of them out of the residual.
        val read = chat.session.residual.toIntArray().toList().dropLast(answer).takeLast(turn.size)
        assertEquals(turn.takeLast(read.size), read)
    }

    @Test
    fun `a document that Python read is asked about as in Python`() =
        runBlocking {
            val file = File(folder, "open.session")
            Conversation.restore(engine, tokenizer, file, dispatcher).use { chat ->
                assertEquals(listOf(Turn(Turn.Kind.DOCUMENT, "The Lighthouse")), chat.turns)
                assertAsked(chat)
            }
        }

    @Test
    fun `a document that Kotlin read is saved for Python to ask about`() =
        runBlocking {
            val file = recorded.output("open.session")
            Conversation(Session(engine), tokenizer, dispatcher).use { chat ->
                chat.attach("notes", document).toList()
                chat.save(file)
            }
            Conversation.restore(engine, tokenizer, file, dispatcher).use { chat ->
                assertEquals(listOf(Turn(Turn.Kind.DOCUMENT, "notes")), chat.turns)
                assertAsked(chat)
            }
        }

    @Test
    fun `what Python noted about the document is kept`() =
        runBlocking {
            val copy = recorded.output("kept.session")
            Conversation.restore(engine, tokenizer, File(folder, "open.session"), dispatcher).use { it.save(copy) }
            Conversation.restore(engine, tokenizer, copy, dispatcher).use { chat ->
                assertEquals(listOf(Turn(Turn.Kind.DOCUMENT, "The Lighthouse")), chat.turns)
                assertAsked(chat)
            }
        }
}
