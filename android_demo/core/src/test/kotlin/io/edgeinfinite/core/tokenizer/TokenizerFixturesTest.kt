package io.edgeinfinite.core.tokenizer

import io.edgeinfinite.core.Fixtures
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.decodeFromJsonElement
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import java.io.File
import java.security.MessageDigest

/** Ids and texts as the tokenizers library of the Python runtime gives them. */
class TokenizerFixturesTest {
    @Serializable
    private class Case(
        val text: String,
        val ids: List<Int>,
        @SerialName("plain_ids") val plainIds: List<Int>,
        val decoded: String,
        @SerialName("decoded_with_special") val decodedWithSpecial: String,
        @SerialName("odd_decoded") val oddDecoded: String,
    )

    @ParameterizedTest
    @MethodSource("families")
    fun `ids and decoded texts equal Python's`(family: String) {
        val tokenizer = tokenizerOf(family)
        val cases = Json.decodeFromJsonElement<List<Case>>(Fixtures.json("tokenizers/$family/cases.json"))
        for (case in cases) {
            val ids = tokenizer.encode(case.text, addSpecialTokens = true)
            assertEquals(case.ids, ids.toList(), "$family: ${case.text}")
            val plain = tokenizer.encode(case.text, addSpecialTokens = false)
            assertEquals(case.plainIds, plain.toList(), "$family: ${case.text}")
            assertEquals(case.decoded, tokenizer.decode(ids, skipSpecialTokens = true))
            assertEquals(case.decodedWithSpecial, tokenizer.decode(ids, skipSpecialTokens = false))
            assertEquals(case.oddDecoded, tokenizer.decode(plain.reversedArray(), skipSpecialTokens = true))
        }
    }

    @ParameterizedTest
    @MethodSource("families")
    fun `every character of every script, among its neighbours and alone, is encoded as in Python`(family: String) {
        val tokenizer = tokenizerOf(family)
        val expected = Json.decodeFromJsonElement<List<String>>(Fixtures.json("tokenizers/$family/characters.json"))
        // As tests/android/characters.py does it.
        val blocks = SCRIPTS.chunked(BLOCK)
        assertEquals(expected.size, blocks.size)
        blocks.zip(expected) { block, sum ->
            val digest = MessageDigest.getInstance("SHA-256")
            for (points in block.chunked(TOGETHER)) {
                val characters = points.filter { it !in SURROGATES }.map(Character::toString)
                for (text in listOf(characters.joinToString(""), characters.joinToString(" ", "a"))) {
                    val ids = tokenizer.encode(text, addSpecialTokens = false)
                    digest.update(ids.joinToString(",", postfix = "\n").encodeToByteArray())
                }
            }
            val ours = digest.digest().joinToString("") { "%02x".format(it) }
            assertEquals(sum, ours, "$family: a character from U+%04X to U+%04X".format(block.first(), block.last()))
        }
    }

    companion object {
        private const val BLOCK = 768
        private const val TOGETHER = 24

        /** The first two planes hold every script, and emoji. */
        private val SCRIPTS = 0..0x1FFFF
        private val SURROGATES = 0xd800..0xdfff

        @JvmStatic
        fun families(): List<String> =
            checkNotNull(File(Fixtures.folder, "tokenizers").list()).sorted().also { check(it.size > 8) }

        internal fun tokenizerOf(family: String): Tokenizer =
            Tokenizer.parse(File(Fixtures.folder, "tokenizers/$family/tokenizer.json").readText())
    }
}
