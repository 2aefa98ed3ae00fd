package io.edgeinfinite.core

import io.edgeinfinite.core.jinja.Template
import io.edgeinfinite.core.jinja.TemplateException
import io.edgeinfinite.core.jinja.mostNanoseconds

/**
 * The artifact's chat_template.jinja.
 *
 * A small interpreter of jinja2's language runs it, because the templates of one family differ
 * between checkpoints. Jinja libraries for the JVM need `java.beans`, which Android doesn't have.
 *
 * @property source the template's text.
 * @param specialTokens values of `bos_token`, `eos_token`, and so on.
 * @throws EdgeInfiniteException the template can't be parsed.
 */
internal class ChatTemplate(
    val source: String,
    private val specialTokens: Map<String, String>,
) {
    private val template =
        try {
            Template(source)
        } catch (error: TemplateException) {
            throw EdgeInfiniteException(
                ErrorCode.CHAT_TEMPLATE,
                "the chat template can't be parsed: ${error.message}; export the artifact again",
                error,
            )
        }

    /**
     * The conversation as the model reads it, up to the start of the next answer.
     *
     * @throws EdgeInfiniteException the template refuses the conversation.
     */
    fun render(messages: List<Message>): String = render(messages.map { it.fields() }, opens = true)

    /**
     * A conversation of messages with any fields.
     *
     * @param opens whether the template writes how an answer begins; it is `add_generation_prompt`.
     * @param nanoseconds that it may take.
     * @param more what else the template is given: `tools`, and switches of its own.
     * @throws EdgeInfiniteException the template refuses the conversation, or writes nothing of a system message.
     */
    fun render(
        messages: List<Map<String, Any?>>,
        opens: Boolean,
        nanoseconds: Long = mostNanoseconds,
        more: Map<String, Any?> = emptyMap(),
    ): String {
        val text = rendered(messages, opens, nanoseconds, more)
        messages.forEachIndexed { place, message ->
            val content = message["content"] as? String ?: ""
            if (message["role"] != Message.SYSTEM || content.trim() in text) return@forEachIndexed
            // Templates may take words out of it, such as a switch.
            val marked = messages.toMutableList().also { it[place] = message + ("content" to SYSTEM) }
            if (SYSTEM !in rendered(marked, opens, nanoseconds, more)) {
                throw EdgeInfiniteException(
                    ErrorCode.CHAT_TEMPLATE,
                    "this artifact's chat template drops the system message; put what it should say into the user's message",
                )
            }
        }
        return text
    }

    private fun rendered(
        messages: List<Map<String, Any?>>,
        opens: Boolean,
        nanoseconds: Long,
        more: Map<String, Any?>,
    ): String {
        val values =
            specialTokens +
                mapOf(
                    "messages" to messages,
                    "tools" to null,
                    "documents" to null,
                    "add_generation_prompt" to opens,
                ) + more
        try {
            return template.render(values, nanoseconds)
        } catch (error: TemplateException) {
            throw EdgeInfiniteException(
                ErrorCode.CHAT_TEMPLATE,
                "the chat template refuses the conversation: ${error.message}",
                error,
            )
        }
    }

    /** A rendering up to the end of an answer, and what follows it. */
    data class RenderedTurn(
        val head: String,
        val tail: String,
    )

    /** [renderAfter] where the user goes on with [text]. */
    fun renderTurn(text: String): RenderedTurn = renderAfter(listOf(Message(Message.USER, text).fields()))

    /**
     * The text between an assistant's answer and the next one, where the conversation goes on with [messages].
     *
     * A state can only be appended to, so only the text after the answer is needed. It is taken
     * from the rendering of a sample conversation; a default system prompt, a date or a first-turn
     * marker come before the answer.
     *
     * @param more as in [render].
     * @return the tail goes from the template's end of the answer to the start of the next one.
     * @throws EdgeInfiniteException the template drops earlier answers, or what it writes after an
     *   answer depends on the turns before it.
     */
    fun renderAfter(
        messages: List<Map<String, Any?>>,
        more: Map<String, Any?> = emptyMap(),
    ): RenderedTurn {
        val turn = said(Message.USER to "Hi", Message.ASSISTANT to ANSWER) + messages
        val earlier = said(Message.USER to "Hello", Message.ASSISTANT to "Yes?")
        val first = render(turn, opens = true, more = more)
        val later = render(earlier + turn, opens = true, more = more)
        val at = first.indexOf(ANSWER)
        val atLater = later.indexOf(ANSWER)
        val tail = first.drop(at + ANSWER.length)
        if (at < 0 || atLater < 0 || tail != later.drop(atLater + ANSWER.length)) {
            throw EdgeInfiniteException(
                ErrorCode.CHAT_TEMPLATE,
                "this artifact's chat template rewrites earlier turns, so a turn can't be appended " +
                    "to what the model has read; start a new chat for every question",
            )
        }
        return RenderedTurn(first.take(at + ANSWER.length), tail)
    }

    private fun said(vararg messages: Pair<String, String>) =
        messages.map { (role, content) -> Message(role, content).fields() }

    private companion object {
        const val ANSWER = "EDGEINFINITE-ANSWER-7F3A"
        const val SYSTEM = "EDGEINFINITE-SYSTEM-4C1E"
    }
}
