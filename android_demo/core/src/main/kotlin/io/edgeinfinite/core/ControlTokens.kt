package io.edgeinfinite.core

import io.edgeinfinite.core.jinja.JsonStyle
import io.edgeinfinite.core.jinja.jsonOf
import io.edgeinfinite.core.tokenizer.Names
import io.edgeinfinite.core.tokenizer.RenamedTokens
import io.edgeinfinite.core.tokenizer.Tokenizer
import java.security.SecureRandom

/**
 * Control tokens: a template may write them, a document can't. Like `runtime_py/text/control_tokens.py`.
 *
 * Text that spells out no control token is encoded as usual. In other text, a mark is put after the
 * first character of each spelled-out control token. After rendering, unmarked control tokens are
 * the template's own. These get aliases, the marks are removed, and a tokenizer that knows control
 * tokens only by their aliases encodes the result.
 *
 * Control tokens are the tokenizer's special tokens, the tokens that end an answer, and markup in
 * the template's source. The markup may occur in an assistant's message, where templates look for
 * `</think>`.
 *
 * @param tokenizer the artifact's.
 * @param stopIds tokens that end an answer.
 * @param template the chat template's source.
 * @param renamed reads the tokenizer again, with other texts for some tokens.
 */
internal class ControlTokens(
    private val tokenizer: Tokenizer,
    stopIds: Set<Int>,
    template: String,
    private val renamed: (Map<String, String>) -> Tokenizer,
) {
    private val always: Set<String>
    private val all: Set<String>
    private val names: Names
    private val alwaysNames: Names
    private val normalized: Names
    private val normalizes: Boolean

    init {
        val added = tokenizer.addedTokens.filter { it.content.trim().length > 1 }
        always = added.filter { it.special || it.id in stopIds }.mapTo(HashSet()) { it.content }
        all = always + added.map { it.content }.filter { isMarkup(it) && it in template }
        val found = added.filter { it.normalized && it.content in all }
        normalized = Names(found.map { tokenizer.normalize(it.content) })
        names = Names(all)
        alwaysNames = Names(always)
        normalizes = found.isNotEmpty()
    }

    private val apart by lazy(::setApart)

    /** Whether the text holds a control token's text. */
    fun areSpelledIn(text: String): Boolean =
        names.areIn(text) || (normalizes && normalized.areIn(tokenizer.normalize(text)))

    /** Whether a text in what JSON can say holds a control token's text. */
    fun areSpelledAmid(value: Any?): Boolean =
        when (value) {
            is String -> areSpelledIn(value)
            is Map<*, *> -> value.entries.any { areSpelledAmid(it.key) || areSpelledAmid(it.value) }
            is List<*> -> value.any(::areSpelledAmid)
            else -> false
        }

    /** A message's fields, with marks in what would be control tokens. */
    fun mark(message: Map<String, Any?>): Map<String, Any?> {
        val isAnswer = message["role"] == Message.ASSISTANT
        return message.mapValues { (key, value) ->
            marked(value, if (isAnswer && key == "content") alwaysNames else names)
        }
    }

    /** Values by name, with marks in all of their texts. */
    fun markAll(values: Map<String, Any?>): Map<String, Any?> = values.mapValues { marked(it.value, names) }

    /** A user's text, with marks in what would be control tokens. */
    fun mark(text: String): String = names.marked(text, apart.mark)

    /** The tokens of what the template made of marked text; what has no mark is its own. */
    fun encode(rendering: String): IntArray {
        val aliased = names.replaced(rendering, apart.aliases::getValue)
        return apart.tokens.encode(aliased.replace(apart.mark, "").replace(apart.escapedMark, ""))
    }

    private fun marked(
        value: Any?,
        names: Names,
    ): Any? =
        when (value) {
            is String -> names.marked(value, apart.mark)
            is Map<*, *> -> value.entries.associate { marked(it.key, names) to marked(it.value, names) }
            is List<*> -> value.map { marked(it, names) }
            else -> value
        }

    private fun setApart(): Apart {
        // Random, so that no text can contain it; noncharacters, because normalizers don't change
        // them.
        val number = ByteArray(16).also(SecureRandom()::nextBytes).joinToString("") { "%02x".format(it) }
        val aliases = all.sorted().withIndex().associate { (i, text) -> text to "\uFDD2$number-$i\uFDD3" }
        return Apart(RenamedTokens(tokenizer, aliases, renamed), aliases, "\uFDD0$number\uFDD1")
    }

    private class Apart(
        val tokens: RenamedTokens,
        val aliases: Map<String, String>,
        val mark: String,
    ) {
        /** As a template writes it that asks `tojson` for ASCII. */
        val escapedMark = jsonOf(mark, JsonStyle(isAscii = true)).removeSurrounding("\"")
    }

    internal companion object {
        /** Whether a token stands in brackets, as control tokens do. */
        fun isMarkup(token: String): Boolean = token.first() in "<[" && token.last() in ">]"
    }
}
