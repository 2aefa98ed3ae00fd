package io.edgeinfinite.core

import io.edgeinfinite.core.tokenizer.Names
import io.edgeinfinite.core.tokenizer.RenamedTokens
import io.edgeinfinite.core.tokenizer.Tokenizer
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTimeoutPreemptively
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.time.Duration
import kotlin.random.Random

/** What is found in a text is what one regular expression finds. */
class NamesTest {
    private val random = Random(7)

    private fun text(most: Int) = (0 until random.nextInt(most + 1)).map { "ab<".random(random) }.joinToString("")

    @Test
    fun `every beginning is marked, and the longest is replaced`() {
        repeat(2_000) {
            val texts = List(random.nextInt(4)) { text(4) + "b" }
            val text = text(40)
            val names = Names(texts)
            val any = texts.sortedByDescending { it.length }.joinToString("|", transform = Regex::escape)
            val expression = Regex(any.ifEmpty { "(?!)" })
            assertEquals(expression.containsMatchIn(text), names.areIn(text))
            assertEquals(Regex("(?=$expression).").replace(text) { it.value + "!" }, names.marked(text, "!"))
            assertEquals(expression.replace(text) { "(${it.value})" }, names.replaced(text) { "($it)" })
        }
    }

    @Test
    fun `thousands of names cost no more than a few`() {
        val names = Names(List(6_250) { "<unused$it>" })
        // 6,250 searches of the text took minutes.
        assertTimeoutPreemptively(Duration.ofSeconds(5)) {
            assertFalse(names.areIn("<un".repeat(2_000_000)))
            assertTrue(names.areIn("<un".repeat(2_000_000) + "used6249>"))
        }
    }

    /** A model that joins `<`, `e` and `>` by itself, or by its vocabulary alone. */
    private fun tokenizer(
        merges: String,
        ignoresMerges: Boolean,
        names: Map<String, String>,
    ) = Tokenizer.parse(
        """{"added_tokens": [{"id": 9, "content": "<q>", "special": true, "single_word": false, "lstrip": false,
           "rstrip": false}, {"id": 5, "content": "<e>", "special": true, "single_word": false, "lstrip": false,
           "rstrip": false}], "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
           "model": {"type": "BPE", "vocab": {"<": 0, "e": 1, ">": 2, "a": 3, "<e": 4, "<e>": 5},
           "merges": [$merges], "ignore_merges": $ignoresMerges}}""",
        names,
    )

    @Test
    fun `a word of the model doesn't become the token whose name it is`() {
        val names = mapOf("<e>" to "{end}", "<q>" to "{question}")
        val cases =
            listOf("" to false, "" to true, """"< e", "<e >"""" to false, """["< e", "<e >"]""" to true)
        for ((merges, ignoresMerges) in cases) {
            val list = merges.removeSurrounding("[", "]")
            val renamed = { other: Map<String, String> -> tokenizer(list, ignoresMerges, other) }
            val tokens = RenamedTokens(renamed(emptyMap()), names, renamed)
            assertEquals(listOf(3, 5, 3, 9), tokens.encode("a{end}a{question}").toList())
            val spelled = tokens.encode("<e>a{end}").toList()
            assertEquals(1, spelled.count { it == 5 }, "$merges: $spelled")
        }
    }
}
