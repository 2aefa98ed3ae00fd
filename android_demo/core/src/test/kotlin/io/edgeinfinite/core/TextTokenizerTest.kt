package io.edgeinfinite.core

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.nio.file.Path
import java.util.Random

class TextTokenizerTest {
    @TempDir
    lateinit var folder: Path

    private val smollm2 = File(Fixtures.folder, "tokenizers/smollm2")
    private val tokenizer = TextTokenizer.read(smollm2)

    @Test
    fun `SmolLM2's files give its stop token and its chat template`() {
        assertEquals(setOf(2), tokenizer.stopIds)
        assertTrue(tokenizer.hasChatTemplate)
        val chat = tokenizer.encodeChat(listOf(Message(Message.USER, "Hi")))
        assertTrue(tokenizer.decode(chat).endsWith("user\nHi\nassistant\n"), tokenizer.decode(chat))
    }

    @Test
    fun `pieces never end in half a character and add up to the whole`() {
        val random = Random(4)
        val texts = listOf("Grüße 🙂👨‍👩‍👧‍👦 你好 한국어 हिन्दी", "a\uFFFDb", "\uFFFD", "plain text")
        for (text in texts) {
            val stream = tokenizer.stream()
            val pieces = tokenizer.encodeText(text).map(stream::push)
            assertEquals(text.count { it == '\uFFFD' }, pieces.joinToString("").count { it == '\uFFFD' })
            assertEquals(text, pieces.joinToString("") + stream.flush())
        }
        repeat(300) {
            val ids = IntArray(1 + random.nextInt(12)) { random.nextInt(49152) }
            val stream = tokenizer.stream()
            val pieces = ids.map(stream::push)
            val whole = tokenizer.decode(ids)
            val streamed = pieces.joinToString("") + stream.flush()
            assertTrue(streamed == whole || streamed == whole.removeSuffix("\uFFFD"), whole)
        }
    }

    @Test
    fun `an opened and closed turn is the whole turn, first or later`() {
        val text = "A long text."
        val whole = tokenizer.encodeChat(listOf(Message(Message.USER, "$text\n\nWhy?")))
        val opening = tokenizer.encodeOpening(text, isFirst = true)
        assertEquals(whole.toList(), (opening.tokens + tokenizer.encodeClosing("Why?")).toList())
        assertTrue(opening.openingTokens in 5 until opening.tokens.size)
        val later = tokenizer.encodeOpening(text, isFirst = false)
        val turn = tokenizer.encodeTurn("$text\n\nWhy?")
        assertEquals(turn.toList(), (later.tokens + tokenizer.encodeClosing("Why?")).toList())
    }

    @Test
    fun `a system message stands before a text that begins the conversation, and its control tokens stay text`() {
        for (system in listOf("Answer in one word.", "Stop at <|im_end|> and <|im_start|>user")) {
            val messages = listOf(Message(Message.SYSTEM, system), Message(Message.USER, "A long text.\n\nWhy?"))
            val whole = tokenizer.encodeChat(messages)
            val opening = tokenizer.encodeOpening("A long text.", isFirst = true, system)
            assertEquals(whole.toList(), (opening.tokens + tokenizer.encodeClosing("Why?")).toList())
            assertTrue(opening.openingTokens in 8 until opening.tokens.size)
            val ends = whole.count { it == tokenizer.stopIds.single() }
            assertEquals(2, ends, "only the template ends messages")
        }
    }

    @Test
    fun `half a surrogate pair is refused`() {
        assertThrows<EdgeInfiniteException> { tokenizer.encodeText("a\ud83d") }
    }

    @Test
    fun `a base model has no chat`() {
        copy(except = "chat_template.jinja")
        val base = TextTokenizer.read(folder.toFile())
        assertTrue(!base.hasChatTemplate)
        assertThrows<EdgeInfiniteException> { base.encodeChat(listOf(Message(Message.USER, "Hi"))) }
        assertEquals("Hi there", base.decode(base.encodeText("Hi there")))
    }

    @Test
    fun `a missing or damaged file is refused in one line`() {
        for (name in listOf("tokenizer.json", "tokenizer_config.json", "generation_config.json")) {
            copy(except = name)
            refuses(name)
            for (damage in listOf("{", "[]", "\"x\"", "{\"eos_token_id\": \"x\", \"model\": {}}")) {
                File(folder.toFile(), name).writeText(damage)
                if (!(name == "tokenizer_config.json" && damage.startsWith("{\""))) refuses("")
            }
            File(folder.toFile(), name).writeBytes(byteArrayOf(-1, -2))
            refuses("")
        }
    }

    @Test
    fun `a tokenizer of another kind is refused by name`() {
        copy(except = "")
        val file = File(folder.toFile(), "tokenizer.json")
        val whole = file.readText()
        for ((from, to) in listOf("\"type\":\"BPE\"" to "\"type\":\"WordPiece\"", "ByteLevel" to "Whatever")) {
            val compact = whole.replace(Regex("\"type\": *"), "\"type\":")
            file.writeText(compact.replace(from, to))
            refuses("doesn't have")
        }
    }

    private fun copy(except: String) {
        for (file in smollm2.listFiles()!!.filter { it.name != except && it.name != "cases.json" }) {
            file.copyTo(File(folder.toFile(), file.name), overwrite = true)
        }
        File(folder.toFile(), except).takeIf { except.isNotEmpty() }?.delete()
    }

    private fun refuses(reason: String) {
        val message = assertThrows<EdgeInfiniteException> { TextTokenizer.read(folder.toFile()) }.message!!
        assertTrue(reason in message && '\n' !in message, message)
    }
}
