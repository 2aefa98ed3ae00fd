package io.edgeinfinite.core.tokenizer

import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer
import io.edgeinfinite.core.Fixtures
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import java.io.File
import java.util.Random

/** Random texts against the tokenizers library itself, through DJL's binding of it. */
class TokenizerFuzzTest {
    @ParameterizedTest
    @MethodSource("families")
    fun `ids and decoded texts of random texts equal the library's`(family: String) {
        val file = File(Fixtures.folder, "tokenizers/$family/tokenizer.json")
        val ours = TokenizerFixturesTest.tokenizerOf(family)
        val random = Random(family.hashCode().toLong())
        val options = mapOf("addSpecialTokens" to "true", "truncation" to "DO_NOT_TRUNCATE")
        HuggingFaceTokenizer.newInstance(file.inputStream(), options).use { library ->
            repeat(TEXTS) {
                val text = randomText(random)
                val expected = library.encode(text).ids.map { it.toInt() }
                assertEquals(expected, ours.encode(text, addSpecialTokens = true).toList(), describe(text))
                val ids = LongArray(random.nextInt(20)) { expected[random.nextInt(expected.size)].toLong() }
                val decoded = ours.decode(IntArray(ids.size) { ids[it].toInt() }, skipSpecialTokens = true)
                assertEquals(library.decode(ids, true), decoded, ids.toList().toString())
            }
        }
    }

    private val snippets: List<String> by lazy {
        Fixtures.json("tokenizers/qwen/cases.json").jsonArray.map {
            it.jsonObject.getValue("text").jsonPrimitive.content
        }.filter { it.isNotEmpty() && it.length < 200 }
    }

    /** Pieces of sentences, special tokens, and characters from anywhere. */
    private fun randomText(random: Random): String {
        val text = StringBuilder("a")
        repeat(random.nextInt(8)) {
            when (random.nextInt(4)) {
                0 -> {
                    val snippet = snippets[random.nextInt(snippets.size)]
                    val from = random.nextInt(snippet.length)
                    text.append(snippet, from, from + random.nextInt(snippet.length - from + 1))
                }
                1 -> repeat(random.nextInt(6)) { text.append(AWKWARD[random.nextInt(AWKWARD.size)]) }
                2 -> repeat(random.nextInt(8)) { text.appendCodePoint(randomPoint(random)) }
                else -> repeat(random.nextInt(5)) { text.append((' '.code + random.nextInt(95)).toChar()) }
            }
        }
        return wholeCharacters(text)
    }

    /** Snippets may have been cut inside a surrogate pair. */
    private fun wholeCharacters(text: CharSequence): String {
        val whole = StringBuilder()
        text.codePoints().filter { it !in SURROGATES }.forEach(whole::appendCodePoint)
        return whole.toString()
    }

    private fun randomPoint(random: Random): Int {
        while (true) {
            val point = random.nextInt(BOUNDS[random.nextInt(BOUNDS.size)])
            if (point !in SURROGATES) return point
        }
    }

    private fun describe(text: String) = text.map { "%04x".format(it.code) }.joinToString(" ", "$text: ")

    companion object {
        private const val TEXTS = 3000
        private val SURROGATES = 0xd800..0xdfff

        /** Most scripts, all that is in use, everything. */
        private val BOUNDS = listOf(0x3000, 0x20000, 0x110000)
        private val AWKWARD =
            listOf(
                " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "'s", "'LL", "'ſ", "1", "²", "٣", "_", "é",
                "e\u0301", "<|im_end|>", "<|im_start|>", "<think>", "</think>", "<s>", "</s>", "[INST]",
                "word", "left", "<|user|>", "<|end|>", "▁", "<0x0A>", "Ġ", "🙂", "👨‍👩‍👧", "\u0085", "가", "각",
            )

        @JvmStatic
        fun families(): List<String> = TokenizerFixturesTest.families()
    }
}
