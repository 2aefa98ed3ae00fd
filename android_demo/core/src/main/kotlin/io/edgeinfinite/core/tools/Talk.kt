package io.edgeinfinite.core.tools

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.Message
import io.edgeinfinite.core.TextTokenizer

/**
 * A conversation with tools and the chat template's own switches: the tokens of its prompts, and how its
 * answers are read. Thread-safe.
 *
 * The checkpoint's template tells the model of the tools. One that knows none is given them in the system
 * message, in Hermes' words, and results as a user's messages. The form of the calls is found by what the
 * template writes.
 *
 *     val talk = Talk(tokenizer, listOf(Tool("weather", "Of a city", schema)))
 *     val prompt = talk.encode(listOf(Message(Message.USER, "Is it raining in Rome?")))
 *     val reader = talk.reader(prompt)
 *     Generator(session, tokenizer, prompt, sampler, shown = talk.shown).events().collect {
 *         if (it is GenerationEvent.Piece) reader.push(it.text).forEach(::show)
 *     }
 *     reader.finish().forEach(::show)
 *     val news = reader.calls.map { Message.result(it, run(it)) }
 *     val next = talk.encodeAfter(news)    // to append to the same session
 *
 * Nothing in Kotlin makes the model keep to the tools' schemas: the grammars for that are in Python alone.
 * So look at a call's arguments before you use them.
 *
 * @param tokenizer the artifact's.
 * @property tools those that the model is told of and may call; each name once.
 * @param switches the template's own, such as `enable_thinking`: texts, numbers, truth values.
 * @throws EdgeInfiniteException the template lacks a switch, writes calls in a form that isn't known here,
 *   or two tools have one name.
 */
public class Talk
@JvmOverloads
constructor(
    private val tokenizer: TextTokenizer,
    public val tools: List<Tool> = emptyList(),
    switches: Map<String, Any?> = emptyMap(),
) {
    private val abilities = Abilities(tokenizer.templateSource)
    private val form = if (tools.isEmpty()) ToolForm.HERMES else abilities.toolForm
    private val more: Map<String, Any?>

    init {
        val twice = tools.groupBy { it.name }.entries.find { it.value.size > 1 }
        if (twice != null) throw wrong("the tool ${twice.key} is declared twice; declare it once")
        val declared: Map<String, Any?> = mapOf("tools" to tools.map { it.declared() })
        val told = if (tools.isEmpty() || !abilities.writesTools) emptyMap<String, Any?>() else declared
        more = abilities.switches(switches) + told
        checkUnicode(declared)
        checkUnicode(more)
    }

    /**
     * The special tokens that the reader must see: give them to `Generator`, which leaves others out of an
     * answer's text.
     */
    public val shown: Set<Int> =
        if (tools.isEmpty() && !abilities.thinks) {
            emptySet()
        } else {
            val marks = if (tools.isEmpty()) emptyList<String>() else form.marks
            (marks + THINK + THOUGHT).mapNotNullTo(HashSet(), tokenizer::specialIdOf)
        }

    /**
     * A whole conversation, ending where the assistant's next answer starts.
     *
     * @throws EdgeInfiniteException there is no chat template, or it refuses the conversation.
     */
    public fun encode(messages: List<Message>): IntArray = tokenizer.encodeChat(fields(messages, tools), more)

    /**
     * The tokens to append after an answer when the conversation goes on with [messages]: results of its
     * calls, or what the user says next.
     *
     * @throws EdgeInfiniteException there is no chat template, or it writes earlier turns anew; then [encode]
     *   the whole conversation for a new session.
     */
    public fun encodeAfter(messages: List<Message>): IntArray =
        tokenizer.encodeAfter(fields(messages, emptyList()), more)

    /** Reads the answer to a [prompt] that [encode] or [encodeAfter] made. */
    public fun reader(prompt: IntArray): AnswerReader {
        val end = tokenizer.spelled(prompt.takeLast(END_OF_PROMPT).toIntArray())
        val thinks = abilities.thinks
        return AnswerReader(form, tools, thinks, thinks && Abilities.opensThought(end))
    }

    private fun fields(
        messages: List<Message>,
        told: List<Tool>,
    ): List<Map<String, Any?>> {
        val plain = if (abilities.writesTools) messages else plainMessages(messages, told)
        return plain.map { it.fields() }.onEach(::checkUnicode)
    }

    private fun checkUnicode(value: Any?) {
        when (value) {
            is String ->
                if (!Charsets.UTF_8.newEncoder().canEncode(value)) {
                    throw wrong("a text isn't valid Unicode: half a surrogate pair stands in it; take it out")
                }
            is List<*> -> value.forEach(::checkUnicode)
            is Map<*, *> -> {
                value.keys.forEach(::checkUnicode)
                value.values.forEach(::checkUnicode)
            }
        }
    }

    private fun wrong(message: String) = EdgeInfiniteException(ErrorCode.INVALID_ARGUMENT, message)

    private companion object {
        /** Tokens at a prompt's end that say whether reasoning has begun. */
        const val END_OF_PROMPT = 16
    }
}
