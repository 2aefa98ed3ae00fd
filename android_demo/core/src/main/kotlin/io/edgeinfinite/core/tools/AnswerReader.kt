package io.edgeinfinite.core.tools

import io.edgeinfinite.core.jinja.JsonException
import io.edgeinfinite.core.jinja.TemplateException
import io.edgeinfinite.core.jinja.isPythonSpace
import io.edgeinfinite.core.jinja.jsonOf

internal const val THINK = "<think>"
internal const val THOUGHT = "</think>"

/**
 * Reads one answer to its parts, a piece of text at a time: reasoning, text, calls of tools. As Python's
 * `tools/reader.py`. Made by [Talk.reader].
 *
 * What begins like a call and is none stays text, and so does a call of a tool that isn't there, or one
 * whose arguments are known only as a whole and nested more than 64 levels deep. White space around calls
 * and behind reasoning is left out. No grammar holds the model to a tool's schema in
 * Kotlin: look at a call's arguments before you use them.
 *
 * @param form in which calls are written.
 * @param tools those that may be called; none for no calls.
 * @param thinks whether the answer may begin with reasoning.
 * @param thinking the prompt has begun the reasoning.
 */
public class AnswerReader internal constructor(
    private val form: ToolForm,
    tools: List<Tool>,
    thinks: Boolean = false,
    thinking: Boolean = false,
) {
    private enum class State { THOUGHT, TEXT, CALL, ARGUMENTS, AFTER }

    private val tools = tools.associateBy { it.name }
    private val whole = ArrayList<ToolCall>()
    private var mayThink = thinks && !thinking
    private var state = if (thinking) State.THOUGHT else State.TEXT
    private var held = ""

    /** Text or a call came, white space apart. */
    private var hasBegun = false

    /** White space that comes next goes. */
    private var strips = thinking
    private var isDone = false
    private var value: JsonEnd? = null
    private var callName = ""
    private val callText = StringBuilder()
    private val told = ArrayList<AnswerPart>()

    /** The calls that are whole; a copy. */
    public val calls: List<ToolCall> get() = whole.toList()

    /** Whether the last call isn't whole yet. */
    public val isOpen: Boolean get() = value != null

    /** The parts that a piece of text completes. */
    public fun push(text: String): List<AnswerPart> {
        held += text
        return read()
    }

    /** The rest, when no text follows. */
    public fun finish(): List<AnswerPart> {
        isDone = true
        return read()
    }

    private fun read(): List<AnswerPart> {
        told.clear()
        do {
            val before = state to held
            when (state) {
                State.THOUGHT -> think()
                State.TEXT -> text()
                State.CALL -> call()
                State.ARGUMENTS -> arguments()
                State.AFTER -> after()
            }
        } while (before != state to held)
        return told.toList()
    }

    private fun think() {
        val (before, found, after) = partition(held, THOUGHT)
        val keep = if (found.isNotEmpty() || isDone) 0 else openLength(held, THOUGHT)
        var text = before.dropLast(keep)
        if (strips) text = stripStart(text)
        if (strip(text).isNotEmpty() || (text.isNotEmpty() && !strips)) {
            told += AnswerPart.Thought(text)
            strips = false
        }
        held = if (found.isNotEmpty()) after else before.takeLast(keep)
        if (found.isNotEmpty()) {
            state = State.TEXT
            strips = true
        }
    }

    private fun text() {
        if ((strips || !hasBegun) && !begins()) return
        val begin = if (tools.isEmpty()) "" else form.begin
        val (before, found, after) = if (begin.isEmpty()) Triple(held, "", "") else partition(held, begin)
        if (found.isNotEmpty()) {
            if (strip(before).isNotEmpty()) told += AnswerPart.Said(stripEnd(before))
            held = after
            state = State.CALL
            hasBegun = true
            return
        }
        var keep = 0
        if (!isDone && begin.isNotEmpty()) {
            keep = openLength(held, begin)
            keep = held.length - stripEnd(held.dropLast(keep)).length
        }
        var text = held.dropLast(keep)
        if (isDone && whole.isNotEmpty() && strip(text).isEmpty()) text = ""
        held = held.takeLast(keep)
        if (text.isNotEmpty()) {
            hasBegun = true
            told += AnswerPart.Said(text)
        }
    }

    /** Looks at how text begins; whether it is read on as text now. */
    private fun begins(): Boolean {
        val stripped = stripStart(held)
        if (mayThink && stripped.startsWith(THINK)) {
            held = stripped.drop(THINK.length)
            state = State.THOUGHT
            mayThink = false
            strips = true
            return false
        }
        if (mayThink && THINK.startsWith(stripped) && !isDone) return false
        if (form.begin.isEmpty() && tools.isNotEmpty() && stripped.startsWith("{")) {
            held = stripped
            state = State.CALL
            hasBegun = true
            return false
        }
        if (stripped.isEmpty() && !isDone) return false
        if (strips) {
            held = stripped
            strips = false
        }
        return true
    }

    /** A call that isn't known yet. */
    private fun call() {
        val begun = form.body.begun(held)
        if (begun != null && begun.name in tools) {
            begin(begun.name)
            held = held.drop(begun.end)
            value = JsonEnd()
            state = State.ARGUMENTS
            return
        }
        val (body, found, after) = ended(held)
        if (found.isEmpty() && !isDone) return
        val calls = callsOf(body)
        if (calls == null) {
            told += AnswerPart.Said(form.begin + body + found)
        } else {
            for ((name, given) in calls) {
                begin(name)
                piece(given)
                end()
            }
        }
        behindCall(after)
    }

    /** The names and arguments in a body; null if it is no call. */
    private fun callsOf(body: String): List<Pair<String, String>>? =
        try {
            val calls = form.body.calls(body, tools)
            if (calls.any { it.name !in tools }) null else calls.map { it.name to finite(it.arguments) }
        } catch (_: NoCallException) {
            null
        } catch (_: JsonException) {
            null
        } catch (_: TemplateException) {
            null
        }

    /** JSON, which has no infinite numbers. */
    private fun finite(arguments: Map<*, *>): String {
        checkFinite(arguments, 1)
        return jsonOf(arguments)
    }

    private fun checkFinite(
        value: Any?,
        depth: Int,
    ) {
        if (depth > DEEPEST && (value is List<*> || value is Map<*, *>)) throw NoCallException("nested too deeply")
        when (value) {
            is Double -> if (value.isNaN() || value.isInfinite()) throw NoCallException("no number")
            is List<*> -> value.forEach { checkFinite(it, depth + 1) }
            is Map<*, *> -> value.values.forEach { checkFinite(it, depth + 1) }
        }
    }

    /** The JSON of a call's arguments, told as it comes. */
    private fun arguments() {
        val end = checkNotNull(value)
        val length = end.length(held)
        if (length > 0) {
            piece(held.take(length))
            held = held.drop(length)
        }
        if (end.isWhole) {
            end()
            value = null
            state = State.AFTER
        }
    }

    private fun begin(name: String) {
        told += AnswerPart.CallBegun(name)
        callName = name
        callText.clear()
    }

    private fun piece(text: String) {
        told += AnswerPart.CallPiece(text)
        callText.append(text)
    }

    private fun end() {
        whole += ToolCall(callName, callText.toString())
    }

    /** What stands between a call's arguments and its end. */
    private fun after() {
        val (_, found, after) = ended(held)
        if (found.isNotEmpty() || isDone) behindCall(after)
    }

    private fun behindCall(rest: String) {
        held = rest
        state = State.TEXT
        strips = true
    }

    /** The text before a call's end, the end, and what follows. */
    private fun ended(text: String): Triple<String, String, String> {
        if (form.end.isNotEmpty()) return partition(text, form.end)
        val at = if (form.begin.isEmpty()) -1 else text.indexOf(form.begin) // which begins the next one
        return if (at < 0) Triple(text, "", "") else Triple(text.take(at), " ", text.drop(at))
    }

    private companion object {
        /** Levels of lists and objects in a call's arguments; fewer than any form's parser takes. */
        const val DEEPEST = 64
    }
}

/** Finds where a JSON object ends. */
private class JsonEnd {
    private var depth = 0
    private var isInText = false
    private var isEscaped = false

    var isWhole = false
        private set

    /** How many of the next characters belong to it. */
    fun length(text: String): Int {
        for ((at, sign) in text.withIndex()) {
            when {
                isEscaped -> isEscaped = false
                isInText && sign == '\\' -> isEscaped = true
                sign == '"' -> isInText = !isInText
                isInText -> Unit
                sign in "{[" -> depth += 1
                sign in "}]" -> depth -= 1
            }
            if (!isInText && sign in "}]" && depth == 0) {
                isWhole = true
                return at + 1
            }
        }
        return text.length
    }
}

private fun partition(
    text: String,
    mark: String,
): Triple<String, String, String> {
    val at = text.indexOf(mark)
    return if (at < 0) Triple(text, "", "") else Triple(text.take(at), mark, text.drop(at + mark.length))
}

private fun stripStart(text: String) = text.trimStart(::isPythonSpace)

private fun stripEnd(text: String) = text.trimEnd(::isPythonSpace)

/** Characters at the end of a text that may be the start of a mark. */
private fun openLength(
    text: String,
    mark: String,
): Int = (minOf(mark.length - 1, text.length) downTo 1).firstOrNull { mark.startsWith(text.takeLast(it)) } ?: 0
