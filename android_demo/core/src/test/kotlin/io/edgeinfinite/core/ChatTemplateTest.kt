package io.edgeinfinite.core

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.decodeFromJsonElement
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource
import java.util.Calendar

class ChatTemplateTest {
    @Serializable
    private class Cases(
        @SerialName("special_tokens") val specialTokens: Map<String, String>,
        val cases: List<Case>,
    )

    @Serializable
    private class Case(
        val name: String,
        val template: String,
        val messages: List<Map<String, String>>,
        val rendered: String?,
        val turn: List<String>?,
    )

    @TestFactory
    fun `conversations render as jinja2 renders them`(): List<DynamicTest> {
        val cases = Json.decodeFromJsonElement<Cases>(Fixtures.json("templates/cases.json"))
        return cases.cases.mapIndexed { index, case ->
            DynamicTest.dynamicTest("${case.name} $index") {
                val template = ChatTemplate(case.template, cases.specialTokens)
                val messages = case.messages.map { Message(it.getValue("role"), it.getValue("content")) }
                assertEquals(case.rendered, orNull { template.render(messages) })
                val turn = orNull { template.renderTurn(messages[0].content) }
                assertEquals(case.turn, turn?.let { listOf(it.head, it.tail) })
            }
        }
    }

    @Test
    fun `a system message that the template would drop is refused`() {
        val told = Message(Message.SYSTEM, " Be brief.\n")
        val hi = Message(Message.USER, "Hi")
        val rest = "{{ m.role }}: {{ m.content }}\n{% endfor %}"
        val drops = ChatTemplate("{% for m in messages if m.role != 'system' %}$rest", emptyMap())
        val first = ChatTemplate("{% for m in messages if m.role != 'system' or m == messages[0] %}$rest", emptyMap())
        for ((template, messages) in listOf(drops to listOf(told, hi), first to listOf(hi, told, hi))) {
            val error = assertThrows(EdgeInfiniteException::class.java) { template.render(messages) }
            assertTrue("drops the system message" in error.message!!)
        }
        assertEquals("system:  Be brief.\n\nuser: Hi\n", first.render(listOf(told, hi)))
        val switch = "{% for m in messages %}{{ m.content.replace('/no_think', '') }}{% endfor %}"
        val switched = Message(Message.SYSTEM, "Be brief. /no_think")
        assertEquals("Be brief. Hi", ChatTemplate(switch, emptyMap()).render(listOf(switched, hi)))
    }

    private fun <T> orNull(compute: () -> T): T? =
        try {
            compute()
        } catch (_: EdgeInfiniteException) {
            null
        }

    @ParameterizedTest
    @ValueSource(
        strings = [
            "{% if x %}", "{{ x", "{% for %}{% endfor %}", "{% unknown %}", "{{ 'a }}", "{{ a b }}", "{% endif %}",
            "{% set x = %}", "{# open", "{{ a | }}", "{{ [1, }}", "{% raw %}x",
        ],
    )
    fun `a template with a syntax error is refused in one line`(source: String) {
        val error = assertThrows(EdgeInfiniteException::class.java) { ChatTemplate(source, emptyMap()) }
        assertTrue("can't be parsed" in error.message!! && "\n" !in error.message!!)
    }

    @ParameterizedTest
    @ValueSource(
        strings = [
            "{{ messages.append(1) }}", "{{ x.y.z }}", "{{ 1 + 'a' }}", "{{ ''.__class__ }}{{ ''.__class__.x }}",
            "{{ raise_exception('no') }}", "{{ range(10000000) }}", "{{ 1 // 0 }}", "{{ x() }}", "{{ 'a' | nofilter }}",
            "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{ 'x' * 1000000000 }}", "{{ 1 is notest }}",
            "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}", "{{ none + 1 }}",
            "{{ messages[0].content | tojson(indent='x') }}", "{{ ['x'] | tojson(indent=1000000000) }}",
            "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
            "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
            "{% set ns = namespace(s=[]) %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}",
            "{{ 'ab' * 9223372036854775807 }}", "{{ 'a' | indent(1000000000000, true) }}",
            "{{ ('a' * 100000).replace('a', 'a' * 100000) }}", "{{ ('a' * 10000).join(range(99999)) }}",
            "{% for a in [1] %}{{ loop.cycle() }}{% endfor %}",
        ],
    )
    fun `a template that goes wrong or on without end is refused in one line`(source: String) {
        val template = ChatTemplate(source, emptyMap())
        val error = assertThrows(EdgeInfiniteException::class.java) { template.render(listOf(Message("user", "x"))) }
        assertTrue("refuses the conversation" in error.message!!)
    }

    @ParameterizedTest
    @ValueSource(strings = ["(", "[", "{% if x %}", "not ", "-"])
    fun `a template that is nested without end is refused in one line`(part: String) {
        val source = if (part.startsWith("{")) part.repeat(20_000) else "{{ ${part.repeat(20_000)}"
        val error = assertThrows(EdgeInfiniteException::class.java) { ChatTemplate(source, emptyMap()) }
        assertTrue("can't be parsed" in error.message!! && "\n" !in error.message!!)
    }

    @Test
    fun `the date is today's`() {
        val rendered = ChatTemplate("{{ strftime_now('%Y %-d') }}", emptyMap()).render(emptyList())
        val now = Calendar.getInstance()
        assertEquals("${now.get(Calendar.YEAR)} ${now.get(Calendar.DAY_OF_MONTH)}", rendered)
    }
}
