package io.edgeinfinite.core.tools

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode

/**
 * What a checkpoint's chat template knows: tools, reasoning, switches of its own. As Python's
 * `tools/abilities.py`.
 *
 * @param source the template's.
 */
internal class Abilities(
    private val source: String,
) {
    /** Whether the template itself tells the model of tools. */
    val writesTools: Boolean get() = "tools" in source

    /** Whether answers may begin with reasoning. */
    val thinks: Boolean get() = THOUGHT in source

    /**
     * How the model writes calls.
     *
     * @throws EdgeInfiniteException the template knows tools, in a form that isn't known here.
     */
    val toolForm: ToolForm
        get() {
            if (!writesTools) return ToolForm.HERMES
            return ToolForm.of(source) ?: throw EdgeInfiniteException(
                ErrorCode.CHAT_TEMPLATE,
                "tools: this artifact's chat template writes calls in a form that isn't known here; leave tools out",
            )
        }

    /**
     * The template's own switches, as it takes them.
     *
     * @throws EdgeInfiniteException the template doesn't know one, or its value is none of JSON's.
     */
    fun switches(given: Map<String, Any?>): Map<String, Any?> {
        val unknown = given.keys.find { it in GIVEN || !isNamed(it) }
        if (unknown != null) {
            throw EdgeInfiniteException(
                ErrorCode.INVALID_ARGUMENT,
                "this artifact's chat template has no switch '${shown(unknown)}'; leave it out",
            )
        }
        return given.mapValues { (name, value) -> valueOf(name, value) }
    }

    private fun valueOf(
        name: String,
        value: Any?,
    ): Any? =
        when (value) {
            null, is String, is Boolean, is Long, is Double -> value
            is Int -> value.toLong()
            is Float -> value.toDouble()
            is List<*> -> value.map { valueOf(name, it) }
            is Map<*, *> -> value.entries.associate { (key, one) -> key.toString() to valueOf(name, one) }
            else -> throw EdgeInfiniteException(
                ErrorCode.INVALID_ARGUMENT,
                "the switch '${shown(name)}' has a value that JSON can't say; give a text or a truth value",
            )
        }

    /** Whether the source holds the name as a word, as Python's `\b` has it. */
    private fun isNamed(name: String): Boolean {
        if (name.isEmpty()) return false
        var at = source.indexOf(name)
        while (at >= 0) {
            if (isBound(at) && isBound(at + name.length)) return true
            at = source.indexOf(name, at + 1)
        }
        return false
    }

    private fun isBound(at: Int) = (at > 0 && isWordAt(source, at - 1)) != (at < source.length && isWordAt(source, at))

    companion object {
        /** What templates are given anyway. */
        private val GIVEN =
            setOf("messages", "tools", "documents", "add_generation_prompt", "continue_final_message") +
                listOf("bos", "eos", "unk", "pad", "sep", "cls", "mask").map { "${it}_token" }

        /** Whether a prompt ends where reasoning has just begun. */
        fun opensThought(text: String): Boolean = strip(text).endsWith(THINK)
    }
}
