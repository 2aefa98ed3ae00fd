package io.edgeinfinite.core

import io.edgeinfinite.core.tokenizer.TokenBytes
import io.edgeinfinite.core.tokenizer.Tokenizer
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** As Python's test_text_stream.py: first spaces, broken bytes, and the bytes of single tokens. */
class TextStreamTest {
    private val words =
        listOf("<unk>", "<s>") + (0..255).map { "<0x%02X>".format(it) } +
            listOf("\u2581Paris", "\u2581is", "\u2581", "!")
    private val paris = words.indexOf("\u2581Paris")
    private val iss = words.indexOf("\u2581is")
    private val sign = words.indexOf("!")

    private val llama =
        """{"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}"""
    private val metaspace =
        """{"type": "Sequence", "decoders": [{"type": "ByteFallback"},
            {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}]}"""

    private fun tokenizer(decoder: String): Tokenizer {
        val vocabulary = words.withIndex().joinToString { (id, word) -> "\"$word\": $id" }
        return Tokenizer.parse(
            """{"added_tokens": [{"id": 1, "content": "<s>", "special": true}], "decoder": $decoder,
                "post_processor": {"type": "TemplateProcessing",
                    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                    "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
                "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true,
                    "vocab": {$vocabulary}, "merges": []}}""",
        )
    }

    private fun shown(
        stream: TextStream,
        vararg ids: Int,
    ) = ids.map(stream::push).joinToString("") + stream.flush()

    @Test
    fun `a text that goes on keeps its first space and one that begins loses it`() {
        for (decoder in listOf(llama, metaspace)) {
            val tokenizer = tokenizer(decoder)
            val bytes = TokenBytes(tokenizer)
            assertEquals(" Paris is", shown(TextStream(bytes, false), paris, iss))
            assertEquals(" Paris", shown(TextStream(bytes, false), 1, paris))
            assertEquals("Paris is", shown(TextStream(bytes, true), paris, iss))
            assertEquals(tokenizer.decode(intArrayOf(paris, sign), true), shown(TextStream(bytes, true), paris, sign))
        }
    }

    @Test
    fun `bytes that begin no character are shown at once, and thousands of them in no time`() {
        val bytes = TokenBytes(tokenizer(llama))
        for (byte in listOf(0x80, 0xC0, 0xFF)) {
            val stream = TextStream(bytes, false)
            repeat(3) { assertEquals("\uFFFD", stream.push(2 + byte)) }
        }
        val start = System.nanoTime()
        val stream = TextStream(bytes, false)
        repeat(20_000) { stream.push(2 + 0x80) }
        assertTrue(System.nanoTime() - start < 2_000_000_000L)
    }

    @Test
    fun `a character comes when it is whole, and half of one never`() {
        val stream = TextStream(TokenBytes(tokenizer(llama)), false)
        val pieces = "\u00e9\ud83d\ude00".toByteArray().map { stream.push(2 + (it.toInt() and 0xff)) }
        assertEquals(listOf("", "\u00e9", "", "", "", "\ud83d\ude00"), pieces)
        assertEquals("", stream.push(2 + 0xE2))
        assertTrue(stream.holds)
        assertEquals("\uFFFD!", stream.push(sign))
        assertEquals("", stream.push(2 + 0xE2) + stream.flush())
    }

    @Test
    fun `bytes of tokens come from the vocabulary`() {
        val bytes = TokenBytes(tokenizer(llama))
        assertArrayEquals(" Paris".toByteArray(), bytes.of(paris))
        assertArrayEquals(byteArrayOf(0xE2.toByte()), bytes.of(2 + 0xE2))
        assertArrayEquals("<s>".toByteArray(), bytes.of(1))
        assertEquals(0, bytes.of(99_999).size)
    }

    @Test
    fun `a text that spells its beginning gets no second one`() {
        val ours = TextTokenizer(tokenizer(llama), null, emptySet()) { tokenizer(llama) }
        assertEquals(listOf(1, sign), ours.encodeText("!").toList())
        assertEquals(listOf(1, sign), ours.encodeText("<s>!").toList())
        assertEquals(listOf(1, 1, sign), ours.encodeText("<s><s>!").toList())
        assertEquals(listOf(1), ours.encodeText("<s>").toList())
    }
}
