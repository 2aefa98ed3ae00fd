package io.edgeinfinite.core

import io.edgeinfinite.core.jinja.isPythonSpace
import io.edgeinfinite.core.jinja.mostNanoseconds
import io.edgeinfinite.core.tokenizer.Tokenizer

/**
 * The ids of the control tokens that a template writes where an answer ends. As Python's `answer_ends.py`.
 *
 * Checkpoints name the tokens that end a text, and often not the one that ends a turn. The template is
 * rendered with a stand-in for the answer, and what it writes behind that is what the model was trained
 * to write there.
 *
 * @param template the checkpoint's.
 * @param tokenizer the same checkpoint's.
 * @return mostly one; none where the template writes plain text there, or refuses every conversation.
 */
internal fun turnEnds(
    template: ChatTemplate,
    tokenizer: Tokenizer,
): Set<Int> {
    val controls =
        tokenizer.addedTokens
            .filter { it.content.trim().length > 1 }
            .filter { it.special || (ControlTokens.isMarkup(it.content) && it.content in template.source) }
            .associate { it.content to it.id }
    return TurnEnds(template, controls.keys).found().mapTo(HashSet()) { controls.getValue(it) }
}

private class TurnEnds(
    private val template: ChatTemplate,
    tokens: Set<String>,
) {
    private val longestFirst = tokens.sortedByDescending { it.length }

    /** Tokens that may stand behind a part of an answer, and don't end it. */
    private val inside: Set<String>

    /** What names the pairs that such tokens open. */
    private val opened: Set<List<String>>

    /** What ends the user's turn as well closes no part of an answer. */
    private val ofTurns: Set<String>

    init {
        val asked = if (tokens.isEmpty()) "" else rendered(listOf(USER_TURN), opens = false)
        val prompted = if (tokens.isEmpty()) "" else rendered(listOf(USER_TURN), opens = true)
        val own = StringBuilder() // what the model itself writes before the answer
        for (reply in if (tokens.isEmpty()) emptyList() else listOf(REPLY, THOUGHTFUL)) {
            val text = rendered(listOf(USER_TURN, reply), opens = false)
            val before = text.substringBefore(ANSWER, missingDelimiterValue = "")
            when {
                ANSWER !in text -> Unit
                prompted == asked -> own.append(before.substringAfter(THOUGHT, "")) // it isn't known where it begins
                before.startsWith(prompted) -> own.append(before, prompted.length, before.length)
            }
        }
        inside = tokensIn(own.toString())
        opened = inside.map(::nameOf).filterTo(HashSet()) { it.isNotEmpty() }
        ofTurns = tokensIn(asked.substringAfter(QUESTION, ""))
    }

    fun found(): Set<String> {
        if (longestFirst.isEmpty()) return emptySet()
        val texts =
            listOf(listOf(USER_TURN), listOf(SYSTEM_TURN, USER_TURN)).flatMap { begin ->
                listOf(rendered(begin + REPLY, opens = false), rendered(begin + REPLY + NEXT, opens = true))
            }
        return texts.mapNotNullTo(LinkedHashSet()) { first(it.substringAfter(ANSWER, "")) }
    }

    /** The first token of a text that may begin with white space; null for none. */
    private fun first(behind: String): String? {
        var at = 0
        while (true) {
            while (at < behind.length && isPythonSpace(behind[at])) at += 1
            val token = tokenAt(behind, at) ?: return null
            if (!isInside(token)) return token
            at += token.length
        }
    }

    private fun isInside(token: String) = token in inside || (nameOf(token) in opened && token !in ofTurns)

    private fun tokenAt(
        text: String,
        at: Int,
    ): String? = longestFirst.find { text.startsWith(it, at) }

    private fun tokensIn(text: String): Set<String> {
        val found = HashSet<String>()
        var at = 0
        while (at < text.length) at += tokenAt(text, at)?.also { found += it }?.length ?: 1
        return found
    }

    /** Equal for the two tokens of a pair, such as `<answer>` and `</answer>`. */
    private fun nameOf(token: String): List<String> =
        token.lowercase().map { if (it.isLetterOrDigit()) it else ' ' }.joinToString("").split(' ')
            .filter { it !in BOUND_WORDS }

    /** The conversation; empty if the template refuses it, as some do without a turn's partner. */
    private fun rendered(
        messages: List<Map<String, String>>,
        opens: Boolean,
    ): String =
        try {
            template.render(messages, opens, minOf(NANOSECONDS, mostNanoseconds))
        } catch (_: EdgeInfiniteException) {
            ""
        }

    private companion object {
        const val QUESTION = "EDGEINFINITE-QUESTION-2B90"
        const val ANSWER = "EDGEINFINITE-ANSWER-6D1E"
        const val THOUGHT = "EDGEINFINITE-THOUGHT-C4A7"

        /** For one rendering: an artifact opens in about as long. */
        const val NANOSECONDS = 1_000_000_000L

        val SYSTEM_TURN = messageOf(Message.SYSTEM, "Be brief.")
        val USER_TURN = messageOf(Message.USER, QUESTION)
        val REPLY = messageOf(Message.ASSISTANT, ANSWER)
        val NEXT = messageOf(Message.USER, "Go on.")

        /** Under the names that templates know. */
        val THOUGHTFUL = REPLY + listOf("reasoning_content", "reasoning", "thinking").associateWith { THOUGHT }

        /** What tells the two tokens of a pair apart. */
        val BOUND_WORDS = setOf("", "start", "begin", "open", "end", "close", "of")

        fun messageOf(
            role: String,
            content: String,
        ) = mapOf("role" to role, "content" to content)
    }
}
