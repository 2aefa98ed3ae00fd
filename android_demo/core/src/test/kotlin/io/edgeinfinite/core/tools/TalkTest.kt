package io.edgeinfinite.core.tools

import io.edgeinfinite.core.ChatTemplate
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.Fixtures
import io.edgeinfinite.core.Message
import io.edgeinfinite.core.TextTokenizer
import io.edgeinfinite.core.tokenizer.Tokenizer
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.File

/** What a talk refuses, and what a caller gets back. */
class TalkTest {
    private val now = Tool("now")

    private fun tokenizer(template: String): TextTokenizer {
        val json = File(Fixtures.folder, "tools/tokenizer.json").readText()
        return TextTokenizer(Tokenizer.parse(json), ChatTemplate(template, emptyMap()), emptySet()) {
            Tokenizer.parse(json, it)
        }
    }

    private fun refusal(block: () -> Unit): EdgeInfiniteException {
        val error = assertThrows(EdgeInfiniteException::class.java, block)
        assertTrue('\n' !in error.message.orEmpty())
        return error
    }

    @Test
    fun `what is no tool is refused in one line`() {
        for (name in listOf("", "a b", "x".repeat(129), "\u00e9\n")) {
            assertEquals(ErrorCode.INVALID_ARGUMENT, refusal { Tool(name) }.code)
        }
        for (schema in listOf("", "[]", "{", """{"type": "string"}""", "[".repeat(100_000))) {
            assertEquals(ErrorCode.INVALID_ARGUMENT, refusal { Tool("now", "", schema) }.code)
        }
    }

    @Test
    fun `a talk refuses what the template can't say`() {
        val plain = tokenizer("{{ messages[0].content }}")
        assertTrue("twice" in refusal { Talk(plain, listOf(now, now)) }.message!!)
        assertTrue("no switch 'other'" in refusal { Talk(plain, switches = mapOf("other" to 1)) }.message!!)
        assertTrue("form" in refusal { Talk(tokenizer("{{ tools }}"), listOf(now)) }.message!!)
        val half = Tool("now", "\ud83d")
        assertTrue("Unicode" in refusal { Talk(plain, listOf(half)) }.message!!)
        val broken = Message(Message.ASSISTANT, "", listOf(ToolCall("now", "{\"a\": }")))
        assertTrue("arguments" in refusal { Talk(plain, listOf(now)).encode(listOf(broken)) }.message!!)
    }

    @Test
    fun `calls can be answered, each by its own id`() {
        val line = "{{ m.role }} {{ m.name }} {{ m.tool_call_id }}\n"
        val tokenizer = tokenizer("{{ tools }}<tool_call>{% for m in messages %}$line{% endfor %}")
        val talk = Talk(tokenizer, listOf(now))
        val reader = talk.reader(talk.encode(listOf(Message(Message.USER, "?"))))
        val call = "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1}}</tool_call>"
        reader.push(call + call)
        reader.finish()
        val (one, other) = reader.calls
        assertEquals("now" to """{"a": 1}""", one.name to one.arguments)
        assertTrue(one.id != other.id && one.id.matches(Regex("[0-9a-f]{9}")))
        val text = tokenizer.spelled(talk.encode(listOf(Message(Message.USER, "?"), Message.result(one, "noon"))))
        assertTrue(text.endsWith("tool now ${one.id}\n"), text)
    }

    @Test
    fun `a switch changes the prompt`() {
        val off = "{{ 'no ' if enable_thinking is defined and not enable_thinking }}"
        val tokenizer = tokenizer("$off{{ messages[0].content }}")
        val messages = listOf(Message(Message.USER, "Hi"))
        val without = Talk(tokenizer, switches = mapOf("enable_thinking" to false)).encode(messages)
        assertEquals("no Hi", tokenizer.spelled(without))
        assertNotEquals(without.toList(), Talk(tokenizer).encode(messages).toList())
    }
}
