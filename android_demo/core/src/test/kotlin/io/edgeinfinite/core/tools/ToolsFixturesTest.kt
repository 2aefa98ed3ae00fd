package io.edgeinfinite.core.tools

import io.edgeinfinite.core.ChatTemplate
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.Fixtures
import io.edgeinfinite.core.Message
import io.edgeinfinite.core.TextTokenizer
import io.edgeinfinite.core.jinja.JsonException
import io.edgeinfinite.core.jinja.jsonOf
import io.edgeinfinite.core.jinja.parseJson
import io.edgeinfinite.core.tokenizer.Tokenizer
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.decodeFromJsonElement
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.File

/** What tests/android/tool_cases.py wrote: forms, prompts and answers are Python's. */
class ToolsFixturesTest {
    @Serializable
    private class Form(
        val name: String,
        @SerialName("known_by") val knownBy: List<String>,
        val begin: String,
        val end: String,
        val between: String,
        val marks: List<String>,
    )

    @Serializable
    private class Forms(
        val forms: List<Form>,
        val found: List<List<String?>>,
    )

    @Serializable
    private class GivenTool(
        val name: String,
        val description: String,
        val parameters: String,
    ) {
        fun tool() = Tool(name, description, parameters)
    }

    @Serializable
    private class GivenCall(
        val id: String,
        val name: String,
        val arguments: String,
    ) {
        fun call() = ToolCall(name, arguments, id)
    }

    @Serializable
    private class GivenMessage(
        val role: String,
        val content: String,
        val calls: List<GivenCall>,
        val answers: GivenCall? = null,
    ) {
        fun message() = Message(role, content, calls.map { it.call() }, answers?.call())
    }

    @Serializable
    private class GivenTalk(
        val messages: List<GivenMessage>,
        val read: Int,
        val ids: List<Int>?,
        val after: List<Int>?,
        val text: String?,
    )

    @Serializable
    private class ReadAnswer(
        val shown: List<Int>,
        val ids: List<Int>,
        val pieces: List<String>,
        val parts: List<List<String>>?,
    )

    @Serializable
    private class Prompts(
        val name: String,
        val template: String,
        @SerialName("special_tokens") val specialTokens: Map<String, String>,
        val tools: List<GivenTool>,
        val switches: JsonObject,
        val talks: List<GivenTalk>,
        val read: ReadAnswer?,
    ) {
        val what get() = "$name, ${tools.size} tools, $switches"

        fun tokenizer(): TextTokenizer {
            val json = File(Fixtures.folder, "tools/tokenizer.json").readText()
            val template = ChatTemplate(template, specialTokens)
            return TextTokenizer(Tokenizer.parse(json), template, emptySet()) { Tokenizer.parse(json, it) }
        }

        fun talk(tokenizer: TextTokenizer): Talk {
            val given = parseJson(switches.toString()) as Map<*, *>
            return Talk(tokenizer, tools.map { it.tool() }, given.entries.associate { "${it.key}" to it.value })
        }
    }

    @Serializable
    private class Answer(
        val form: String,
        val tools: Int,
        val thinks: Boolean,
        val thinking: Boolean,
        val pieces: List<String>,
        val parts: List<List<List<String>>>,
        val calls: Int,
        @SerialName("is_open") val isOpen: Boolean,
    )

    private val prompts by lazy { Json.decodeFromJsonElement<List<Prompts>>(Fixtures.json("tools/prompts.json")) }

    @Test
    fun `forms are Python's, and found by the same texts`() {
        val forms = Json.decodeFromJsonElement<Forms>(Fixtures.json("tools/forms.json"))
        assertEquals(forms.forms.map { it.name }, ToolForm.ALL.map { it.name })
        for ((expected, form) in forms.forms.zip(ToolForm.ALL)) {
            assertEquals(expected.knownBy, form.knownBy, form.name)
            assertEquals(
                listOf(expected.begin, expected.end, expected.between),
                listOf(form.begin, form.end, form.between),
                form.name,
            )
            assertEquals(expected.marks, form.marks, form.name)
        }
        for ((source, name) in forms.found) assertEquals(name, ToolForm.of(source!!)?.name, source)
    }

    @Test
    fun `prompts with tools, calls and results have Python's ids`() {
        var made = 0
        var after = 0
        for (case in prompts) {
            val tokenizer = case.tokenizer()
            val talk = orNull { case.talk(tokenizer) }
            for ((number, given) in case.talks.withIndex()) {
                val what = "${case.what}, talk $number"
                val messages = given.messages.map { it.message() }
                val ids = orNull { talk?.encode(messages) }
                assertEquals(given.text, ids?.let(tokenizer::spelled), what)
                assertEquals(given.ids, ids?.toList(), what)
                made += if (ids == null) 0 else 1
                if (given.read == 0) continue
                val news = orNull { talk?.encodeAfter(messages.drop(given.read)) }
                assertEquals(given.after, news?.toList(), what)
                after += if (news == null) 0 else 1
            }
        }
        assertTrue(made > 900 && after > 600, "$made prompts, $after turns")
    }

    @Test
    fun `an answer in tokens has Python's text and parts`() {
        for (case in prompts) {
            val tokenizer = case.tokenizer()
            val talk = orNull { case.talk(tokenizer) }
            val prompt = orNull { talk?.encode(listOf(Message(Message.USER, "Hi"))) }
            val expected = case.read
            assertEquals(expected == null, prompt == null, case.what)
            if (talk == null || prompt == null || expected == null) continue
            assertEquals(expected.shown, talk.shown.sorted(), case.what)
            val stream = tokenizer.stream(begins = true, talk.shown)
            val pieces = expected.ids.map(stream::push)
            assertEquals(expected.pieces, pieces, case.what)
            val reader = talk.reader(prompt)
            val parts = pieces.flatMap(reader::push) + reader.finish()
            // Python has no reader where there is nothing to tell apart.
            val text = listOf(listOf("Said", pieces.joinToString("")))
            val all = parts.map(::told)
            val joined = listOf(listOf("Said", all.joinToString("") { (_, one) -> one }))
            assertEquals(expected.parts ?: text, if (expected.parts == null) joined else all, case.what)
        }
    }

    @Test
    fun `answers in pieces have Python's parts, whole and broken ones`() {
        val answers = Json.decodeFromJsonElement<List<Answer>>(Fixtures.json("tools/answers.json"))
        val tools = prompts.maxBy { it.tools.size }.tools.map { it.tool() }
        for ((number, answer) in answers.withIndex()) {
            val form = ToolForm.ALL.first { it.name == answer.form }
            val reader = AnswerReader(form, tools.take(answer.tools), answer.thinks, answer.thinking)
            val parts = answer.pieces.map { piece -> reader.push(piece).map(::told) }
            val what = "${answer.form} $number: ${answer.pieces}"
            assertEquals(answer.parts, parts + listOf(reader.finish().map(::told)), what)
            assertEquals(answer.calls, reader.calls.size, what)
            assertEquals(answer.isOpen, reader.isOpen, what)
        }
        assertTrue(answers.size > 4_000 && answers.count { it.calls > 0 } > 800)
    }

    @Test
    fun `JSON is read and written as Python does it`() {
        val cases = Json.decodeFromJsonElement<List<List<String?>>>(Fixtures.json("tools/json.json"))
        for ((text, written) in cases) {
            val read =
                try {
                    jsonOf(parseJson(text!!))
                } catch (_: JsonException) {
                    null
                }
            assertEquals(written, read, text)
        }
        assertTrue(cases.size > 5_000)
    }

    private fun told(part: AnswerPart): List<String> =
        when (part) {
            is AnswerPart.Said -> listOf("Said", part.text)
            is AnswerPart.Thought -> listOf("Thought", part.text)
            is AnswerPart.CallBegun -> listOf("CallBegun", part.name)
            is AnswerPart.CallPiece -> listOf("CallPiece", part.text)
        }

    private fun <T> orNull(compute: () -> T): T? =
        try {
            compute()
        } catch (_: EdgeInfiniteException) {
            null
        }
}
