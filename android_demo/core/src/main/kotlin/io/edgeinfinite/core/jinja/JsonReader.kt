package io.edgeinfinite.core.jinja

import io.edgeinfinite.core.DEEPEST_JSON
import java.math.BigInteger

/** A text isn't what Python's `json.loads` reads. */
internal class JsonException(
    message: String,
) : Exception(message)

/**
 * Python's `json.loads`, to what templates compute with: Map, List, String, Long or BigInteger, Double,
 * Boolean, null. Of a key that stands twice the last value counts; `NaN` and `Infinity` are numbers.
 *
 * @throws JsonException it isn't JSON, or is nested more than [DEEPEST_JSON] levels deep.
 */
internal fun parseJson(text: String): Any? = JsonReader(text).whole()

/** An object or a list whose end isn't read yet. */
private abstract class Level(
    val close: Char,
) {
    abstract val value: Any

    abstract fun add(value: Any?)
}

private class Members : Level('}') {
    override val value = LinkedHashMap<String, Any?>()
    var key = ""

    override fun add(value: Any?) {
        this.value[key] = value
    }
}

private class Items : Level(']') {
    override val value = ArrayList<Any?>()

    override fun add(value: Any?) {
        this.value += value
    }
}

private class JsonReader(
    private val text: String,
) {
    private var at = 0

    fun whole(): Any? {
        skipSpace()
        val value = value()
        skipSpace()
        if (at < text.length) fail()
        return value
    }

    /** Without recursion, since a phone's threads have small stacks. */
    private fun value(): Any? {
        val open = ArrayList<Level>()
        while (true) {
            var value: Any?
            val opens = text.getOrNull(at)
            if (opens == '{' || opens == '[') {
                if (open.size == DEEPEST_JSON) throw JsonException("it is nested too deeply")
                at += 1
                skipSpace()
                val level = if (opens == '{') Members() else Items()
                if (!take(level.close)) {
                    open += level
                    key(level)
                    continue
                }
                value = level.value
            } else {
                value = scalar()
            }
            while (true) {
                val level = open.lastOrNull() ?: return value
                level.add(value)
                skipSpace()
                if (!take(level.close)) break
                open.removeAt(open.lastIndex)
                value = level.value
            }
            if (!take(',')) fail()
            skipSpace()
            key(open.last())
        }
    }

    private fun key(level: Level) {
        if (level !is Members) return
        if (text.getOrNull(at) != '"') fail()
        level.key = string()
        skipSpace()
        if (!take(':')) fail()
        skipSpace()
    }

    private fun scalar(): Any? =
        if (text.getOrNull(at) == '"') {
            string()
        } else {
            WORDS.entries.find { text.startsWith(it.key, at) }?.let { word(it.key, it.value) } ?: other()
        }

    private fun word(
        word: String,
        value: Any,
    ): Any {
        at += word.length
        return value
    }

    private fun other(): Any? {
        if (text.startsWith("null", at)) {
            at += "null".length
            return null
        }
        return number()
    }

    private fun string(): String {
        val read = StringBuilder()
        at += 1
        while (true) {
            val unit = text.getOrNull(at++) ?: fail()
            when {
                unit == '"' -> return read.toString()
                unit == '\\' -> read.append(escape())
                unit < ' ' -> fail()
                else -> read.append(unit)
            }
        }
    }

    private fun escape(): Char {
        val letter = text.getOrNull(at++) ?: fail()
        if (letter != 'u') return ESCAPES[letter] ?: fail()
        val digits = text.substring(at, minOf(at + CODE_DIGITS, text.length))
        if (digits.length < CODE_DIGITS || !digits.all { it in '0'..'9' || it in 'a'..'f' || it in 'A'..'F' }) fail()
        at += CODE_DIGITS
        return digits.toInt(16).toChar()
    }

    private fun number(): Any {
        val start = at
        take('-')
        if (!take('0') && digits() == 0) fail()
        val length = at - start - if (text[start] == '-') 1 else 0
        val isFraction = optional { take('.') && digits() > 0 }
        val isPower = optional { (take('e') || take('E')) && signedDigits() > 0 }
        val written = text.substring(start, at)
        if (isFraction || isPower) return written.toDouble()
        if (length > MOST_DIGITS) fail()
        return written.toLongOrNull() ?: BigInteger(written)
    }

    /** Whether [part] was read; else nothing of it was. */
    private fun optional(part: () -> Boolean): Boolean {
        val start = at
        return part().also { if (!it) at = start }
    }

    private fun signedDigits(): Int {
        if (!take('-')) take('+')
        return digits()
    }

    private fun digits(): Int {
        val start = at
        while (at < text.length && text[at] in '0'..'9') at += 1
        return at - start
    }

    private fun take(unit: Char): Boolean = (text.getOrNull(at) == unit).also { if (it) at += 1 }

    private fun skipSpace() {
        while (at < text.length && text[at] in " \t\n\r") at += 1
    }

    private fun fail(): Nothing = throw JsonException("it isn't JSON at character $at")

    private companion object {
        const val CODE_DIGITS = 4

        /** Python's for whole numbers. */
        const val MOST_DIGITS = 4_300
        val WORDS =
            mapOf(
                "true" to true,
                "false" to false,
                "NaN" to Double.NaN,
                "Infinity" to Double.POSITIVE_INFINITY,
                "-Infinity" to Double.NEGATIVE_INFINITY,
            )
        val ESCAPES =
            mapOf(
                '"' to '"',
                '\\' to '\\',
                '/' to '/',
                'b' to '\b',
                'f' to '\u000c',
                'n' to '\n',
                'r' to '\r',
                't' to '\t',
            )
    }
}
