package io.edgeinfinite.core

import io.edgeinfinite.core.jinja.JsonStyle
import io.edgeinfinite.core.jinja.jsonOf
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
    private val normalized: Set<String>

    init {
        val added = tokenizer.addedTokens.filter { it.content.trim().length > 1 }
        always = added.filter { it.special || it.id in stopIds }.mapTo(HashSet()) { it.content }
        all = always + added.map { it.content }.filter { isMarkup(it) && it in template }
        val found = added.filter { it.normalized && it.content in all }
        normalized = found.mapTo(HashSet()) { tokenizer.normalize(it.content) }
    }

    private val apart by lazy(::setApart)

    /** Whether the text holds a control token's text. */
    fun areSpelledIn(text: String): Boolean {
        if (all.any { it in text }) return true
        if (normalized.isEmpty()) return false
        val plain = tokenizer.normalize(text)
        return normalized.any { it in plain }
    }

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
            marked(value, if (isAnswer && key == "content") apart.alwaysStart else apart.start)
        }
    }

    /** Values by name, with marks in all of their texts. */
    fun markAll(values: Map<String, Any?>): Map<String, Any?> = values.mapValues { marked(it.value, apart.start) }

    /** A user's text, with marks in what would be control tokens. */
    fun mark(text: String): String = mark(text, apart.start)

    /** The tokens of what the template made of marked text; what has no mark is its own. */
    fun encode(rendering: String): IntArray {
        val aliased = apart.whole.replace(rendering) { apart.aliases.getValue(it.value) }
        val plain = aliased.replace(apart.mark, "").replace(apart.escapedMark, "")
        return apart.tokenizer.encode(plain, addSpecialTokens = false)
    }

    // After every first character, so that overlapping control tokens are all marked.
    private fun mark(
        text: String,
        start: Regex,
    ) = start.replace(text) { it.value + apart.mark }

    private fun marked(
        value: Any?,
        start: Regex,
    ): Any? =
        when (value) {
            is String -> mark(value, start)
            is Map<*, *> -> value.entries.associate { marked(it.key, start) to marked(it.value, start) }
            is List<*> -> value.map { marked(it, start) }
            else -> value
        }

    private fun setApart(): Apart {
        // Random, so that no text can contain it; noncharacters, because normalizers don't change
        // them.
        val number = ByteArray(16).also(SecureRandom()::nextBytes).joinToString("") { "%02x".format(it) }
        val aliases = all.sorted().withIndex().associate { (i, text) -> text to "\uFDD2$number-$i\uFDD3" }
        return Apart(renamed(aliases), aliases, "\uFDD0$number\uFDD1", all, always)
    }

    private class Apart(
        val tokenizer: Tokenizer,
        val aliases: Map<String, String>,
        val mark: String,
        all: Set<String>,
        always: Set<String>,
    ) {
        /** As a template writes it that asks `tojson` for ASCII. */
        val escapedMark = jsonOf(mark, JsonStyle(isAscii = true)).removeSurrounding("\"")
        val whole = Regex(anyOf(all))
        val start = startOf(all)
        val alwaysStart = startOf(always)
    }

    internal companion object {
        /** Whether a token stands in brackets, as control tokens do. */
        fun isMarkup(token: String): Boolean = token.first() in "<[" && token.last() in ">]"

        private fun startOf(names: Set<String>) = Regex("(?=${anyOf(names)}).", RegexOption.DOT_MATCHES_ALL)

        private fun anyOf(names: Set<String>): String {
            if (names.isEmpty()) return "(?!)"
            return names.sortedByDescending { it.length }.joinToString("|", "(?:", ")", transform = Regex::escape)
        }
    }
}
