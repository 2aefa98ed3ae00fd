package io.edgeinfinite.core

import io.edgeinfinite.core.tokenizer.Tokenizer
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.decodeFromJsonElement
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** The tokens with which templates of public families end an answer, as Python finds them. */
class TurnEndsTest {
    @Serializable
    private class Case(
        val template: String,
        val tokenizer: String,
        @SerialName("special_tokens") val specialTokens: Map<String, String>,
        val ends: List<Int>,
    )

    private val cases = Json.decodeFromJsonElement<List<Case>>(Fixtures.json("turn_ends/cases.json"))

    @Test
    fun `the token behind an answer is found in templates of every shape, though no setting names it`() {
        assertTrue(cases.count { it.ends.isNotEmpty() } > 20)
        for (case in cases) {
            val template = ChatTemplate(case.template, case.specialTokens)
            val parse = { names: Map<String, String> -> Tokenizer.parse(case.tokenizer, names) }
            val found = TextTokenizer(parse(emptyMap()), template, emptySet(), parse).stopIds
            assertEquals(case.ends, found.sorted(), case.template)
        }
    }

    @Test
    fun `the tokens that the settings name stay`() {
        val case = cases.first { it.ends.isNotEmpty() }
        val template = ChatTemplate(case.template, case.specialTokens)
        val parse = { names: Map<String, String> -> Tokenizer.parse(case.tokenizer, names) }
        val found = TextTokenizer(parse(emptyMap()), template, setOf(0), parse).stopIds
        assertEquals(case.ends.toSet() + 0, found)
    }
}
