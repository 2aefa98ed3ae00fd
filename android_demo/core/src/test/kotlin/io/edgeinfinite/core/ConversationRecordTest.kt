package io.edgeinfinite.core

import kotlinx.serialization.SerializationException
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

class ConversationRecordTest {
    private val question = Turn(Turn.Kind.USER, "Who?")
    private val answer = Turn(Turn.Kind.ASSISTANT, "Pip.")

    private fun restored(
        metadata: Map<String, String>,
        hasUnread: Boolean = false,
    ): Pair<ConversationRecord, Boolean> {
        val record = ConversationRecord()
        val isCutOff = record.restore(metadata, hasUnread)
        return record to isCutOff
    }

    @Test
    fun `a file gives back the history, the open turn and what is left of a source`() {
        val record = ConversationRecord()
        record.add(question)
        record.turnIsOpen = true
        record.pending = Pending(offset = 10, length = 100, tokens = 4)
        val (again, isCutOff) = restored(record.toMetadata(listOf(question, answer), isReading = true))
        assertEquals(listOf(question, answer), again.turns)
        assertTrue(again.turnIsOpen)
        assertEquals(record.pending, again.pending)
        assertTrue(isCutOff)
    }

    @Test
    fun `a reading was cut off only if something is left to read`() {
        val reading = ConversationRecord().toMetadata(emptyList(), isReading = true)
        assertFalse(restored(reading).second)
        assertTrue(restored(reading, hasUnread = true).second)
        val stopped = ConversationRecord().toMetadata(emptyList(), isReading = false)
        assertFalse(restored(stopped, hasUnread = true).second)
    }

    @Test
    fun `what Python noted is kept, and its document begins the history`() {
        val document = SessionNotes.ReadDocument("book.epub", "Great Expectations", "00", 200_000, raw = false)
        val notes = SessionNotes("a-model", messageIsOpen = true, document, system = "Be brief.")
        val (record, isCutOff) = restored(mapOf(SessionNotes.KEY to notes.encode()), hasUnread = true)
        assertEquals(listOf(Turn(Turn.Kind.DOCUMENT, "Great Expectations")), record.turns)
        assertTrue(record.turnIsOpen)
        assertTrue(isCutOff)
        record.turnIsOpen = false
        val saved = record.toMetadata(record.turns, isReading = false)
        assertEquals(notes.copy(messageIsOpen = false), SessionNotes.decode(saved[SessionNotes.KEY]))
    }

    @Test
    fun `turns are forgotten from the newest on`() {
        val record = ConversationRecord()
        listOf(question, answer, question).forEach(record::add)
        assertEquals(listOf(answer, question), record.cutTo(1))
        assertEquals(listOf(question), record.turns)
    }

    @Test
    fun `metadata that no conversation wrote is refused`() {
        assertThrows(SerializationException::class.java) { restored(mapOf("conversation" to "{\"turns\":3}")) }
    }
}
