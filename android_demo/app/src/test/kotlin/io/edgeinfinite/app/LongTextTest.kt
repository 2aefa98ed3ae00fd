package io.edgeinfinite.app

import android.view.View
import io.edgeinfinite.app.documents.LongCopy
import io.edgeinfinite.app.documents.LongText
import io.edgeinfinite.app.documents.PlainText
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.Phase
import io.edgeinfinite.core.EdgeInfiniteException
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test
import java.nio.charset.Charset

/** Texts that are longer than any part of the app holds at once. */
class LongTextTest : AppTest() {
    @Test
    fun `more than 20 MB are read piece by piece, go on after the process died, and end where a person ends them`() {
        val book = folder.newFile("book.txt")
        book.bufferedWriter().use { file -> repeat(BIG / LINE.length + 1) { file.write(LINE) } }
        assertTrue(book.length() > BIG)
        val chat = ChatScreen.start(Fixture.ENDLESS)
        val files = app.services.chats
        chat.attach(PickedFiles.file(book))
        // Beyond the first piece, whose tokens are bytes here.
        waitUntil(seconds = 300) { chat.state.tokensRead > LongText.PIECE * 5 / 4 }
        val total = (chat.state.phase as Phase.Reading).total
        assertTrue("$total", total in BIG * 9L / 10..BIG * 11L / 10)
        chat.activity.view<View>(R.id.send).performClick()
        waitUntil { chat.state.phase == Phase.Ready }
        val read = chat.state.tokensRead
        assertTrue("${chat.state.unread}", chat.state.unread > BIG * 9 / 10)
        assertTrue("no tokens of the rest are saved", files.sessionFile(chat.id).length() < BIG / 10)
        chat.leave()
        killProcess()

        val again = ChatScreen.open(chat.id).waitUntilReady()
        assertTrue("${again.state.unread}", again.state.unread > BIG * 9 / 10)
        checkNotNull(app.services.chat(chat.id)).readOn()
        waitUntil(seconds = 300) { again.state.tokensRead > read + LongText.PIECE }
        again.activity.view<View>(R.id.send).performClick()
        waitUntil { again.state.phase == Phase.Ready }
        checkNotNull(app.services.chat(chat.id)).dropUnread()
        waitUntil { again.state.unread == 0 && again.state.phase == Phase.Ready }
        waitUntil { !files.longText(chat.id).exists() }
        assertEquals(1, again.state.items.size)
        app.services.settings.update { it.copy(maxNewTokens = 4) }
        again.ask("What was it?")
        again.leave()
    }

    @Test
    fun `pieces end with a paragraph, a line, a word or a character, and are the whole text`() {
        val file = folder.newFile("long.txt")
        val size = LongText.PIECE.toInt()
        val texts =
            mapOf(
                "paragraphs" to "A short paragraph.\n\n".repeat(size / 5),
                "lines" to "A short line.\n".repeat(size / 5),
                "words" to "word ".repeat(size),
                "characters" to "€".repeat(size),
            )
        val ends = mapOf("paragraphs" to "\n\n", "lines" to "\n", "words" to " ", "characters" to "€")
        for ((name, text) in texts) {
            file.writeText(text)
            val source = LongText(file)
            val pieces = generateSequence(source.pieceAt(0)) { source.pieceAt(it.end) }.toList()
            assertTrue(name, pieces.size > 2)
            assertEquals(name, text, pieces.joinToString("") { it.text })
            assertTrue(name, pieces.all { it.text.endsWith(ends.getValue(name)) })
            assertNull(source.pieceAt(source.length))
        }
        file.delete()
        assertThrows(EdgeInfiniteException::class.java) { LongText(file).pieceAt(0) }
    }

    @Test
    fun `a long text is copied as a short one is read, in any encoding and with any newlines`() {
        val from = folder.newFile("from.txt")
        val to = folder.newFile("to.txt")
        for ((kind, bytes) in texts()) {
            from.writeBytes(bytes)
            val whole = PlainText.of("a.txt", bytes)
            assertEquals(kind, whole.guess to whole.left, LongCopy("a.txt", from, to).run())
            assertEquals(kind, whole.text, to.readText())
        }
        val lying = byteArrayOf(-1, -2, 0, -40)
        for (bytes in listOf(ByteArray(9), byteArrayOf(1, 2, -127, 31), lying)) {
            from.writeBytes(bytes)
            val error = assertThrows(ProblemException::class.java) { LongCopy("a.txt", from, to).run() }
            val expected = assertThrows(ProblemException::class.java) { PlainText.of("a.txt", bytes) }
            assertEquals(expected.problem, error.problem)
        }
    }

    /** Long texts in all that a short one may be in. */
    private fun texts(): Map<String, ByteArray> {
        val text = "Größe\r\nund\rMaß\n\r\n".repeat(20_000)
        val japanese = "これは日本語の文章です。\n".repeat(5_000)
        val plain = "plain ASCII\n".repeat(100_000)
        val emoji = byteArrayOf(-19, -96, -67, -19, -72, -128) // 😀 in two halves
        val ascii = plain.toByteArray()
        val latin = { encoding: String -> text.toByteArray(Charset.forName(encoding)) }
        return mapOf(
            "UTF-8" to latin("UTF-8"),
            "windows-1252" to latin("windows-1252"),
            "UTF-16LE" to "\uFEFF$text".toByteArray(Charsets.UTF_16LE),
            "UTF-16BE without a mark" to latin("UTF-16BE"),
            "Japanese in UTF-16 without a mark" to japanese.replace("\n", " \n").toByteArray(Charsets.UTF_16LE),
            // The first sign that isn't ASCII stands behind all that is looked at for a guess.
            "ISO-2022-JP" to ascii + japanese.toByteArray(Charset.forName("ISO-2022-JP")),
            "HZ" to ascii + "~~ ~{5ZR;PP#,<:Ky2;S{#,NpJ)SZHK!#~}~\n.\n".repeat(5_000).toByteArray(),
            "no HZ" to ascii + "(format t \"~{~a~}\")".toByteArray(),
            "two halves" to ascii + emoji + "ü".toByteArray() + ascii,
            "half a character" to latin("UTF-8") + emoji.take(3) + ascii,
            "a bad byte" to latin("UTF-8") + 0xFF.toByte() + ascii,
            "cut within a character" to ascii + "€".toByteArray().take(2),
            "a statement" to "<?xml encoding='koi8-r'?><p>да ".toByteArray(Charset.forName("KOI8-R")) + ascii,
            "a NUL, and many at the end" to ascii + 0.toByte() + ascii + ByteArray(9_000),
            "the end of an old file" to ascii + 0x1a.toByte(),
            "what nobody sees" to "co\u00ad\nop \u200bzero o\ufb03ce می\u200cخواهم\n".repeat(20_000).toByteArray(),
        )
    }

    private companion object {
        const val BIG = 21_000_000
        const val LINE = "The treasure was buried under the old windmill, near the mill's third stone.\n"
    }
}
