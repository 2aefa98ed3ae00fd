package io.edgeinfinite.core.jinja

import java.math.BigInteger

/*
 * What a template computes with: null, Boolean, Long, BigInteger, Double, String, List, Map, Namespace, Callable
 * and Undefined, printed and compared as in Python.
 */

/** A name or attribute that isn't there: prints as nothing, counts as false, has no attributes. */
internal data class Undefined(
    val name: String,
)

/** `namespace(...)`: what a loop may change outside of it. */
internal class Namespace(
    val fields: MutableMap<String, Any?>,
)

/** Arguments of a call, computed. */
internal class Arguments(
    val positional: List<Any?>,
    val named: Map<String, Any?> = emptyMap(),
) {
    val size: Int get() = positional.size + named.size

    /** The argument at a place, or of a name; [default] when neither is given. */
    fun get(
        index: Int,
        name: String,
        default: Any? = null,
    ): Any? =
        when {
            index < positional.size -> positional[index]
            name in named -> named[name]
            else -> default
        }

    /** The same without the first [count]. */
    fun drop(count: Int) = Arguments(positional.drop(count), named)
}

/** Something that can be called: a macro, a method, `range`. */
internal fun interface Callable {
    fun call(arguments: Arguments): Any?
}

internal fun isTrue(value: Any?): Boolean =
    when (value) {
        null, is Undefined -> false
        is Boolean -> value
        is Long -> value != 0L
        is Double -> value != 0.0
        is String -> value.isNotEmpty()
        is List<*> -> value.isNotEmpty()
        is Map<*, *> -> value.isNotEmpty()
        else -> true
    }

/** The longest text that a template may make; Python's limit depends on the messages. */
internal const val MOST_CHARACTERS = 50_000_000L

/**
 * The value, unless writing it out takes too much.
 *
 * @throws TemplateException it does.
 */
internal fun <T> limited(value: T): T {
    var weight = 0L
    val left = ArrayDeque<Any?>()
    left.add(value)
    while (left.isNotEmpty()) {
        val one = left.removeLast()
        weight += 1
        when (one) {
            is String -> weight += one.length
            is List<*> -> left.addAll(one)
            is Map<*, *> -> {
                left.addAll(one.keys)
                left.addAll(one.values)
            }
        }
        if (weight > MOST_CHARACTERS) throw TemplateException("it writes without end")
    }
    return value
}

/**
 * The number, as a count of characters for each of [texts].
 *
 * @throws TemplateException that would be too many.
 */
internal fun countOf(
    number: Any?,
    texts: Int = 1,
): Int {
    val count = integerOf(number).coerceAtLeast(0)
    if (count > MOST_CHARACTERS / maxOf(texts, 1)) throw TemplateException("it writes without end")
    return count.toInt()
}

/** Python's `separator.join(items)`. */
internal fun joined(
    items: List<Any?>,
    separator: String,
): String {
    countOf(items.size.toLong(), separator.length)
    return limited(items).joinToString(separator) { textOf(it) }
}

/** Python's `str(value)`. */
internal fun textOf(value: Any?): String =
    when (value) {
        is String -> value
        is Undefined -> ""
        else -> reprOf(value)
    }

/** Python's `repr(value)`. */
internal fun reprOf(value: Any?): String =
    when (value) {
        null -> "None"
        true -> "True"
        false -> "False"
        is String -> quoted(value)
        is Double -> floatText(value)
        is List<*> -> value.joinToString(", ", "[", "]") { reprOf(it) }
        is Map<*, *> ->
            value.entries.joinToString(", ", "{", "}") { "${reprOf(it.key)}: ${reprOf(it.value)}" }
        else -> value.toString()
    }

private fun quoted(text: String): String {
    val quote = if ('\'' in text && '"' !in text) '"' else '\''
    val escaped =
        text.map { unit ->
            when (unit) {
                '\\' -> "\\\\"
                '\n' -> "\\n"
                '\r' -> "\\r"
                '\t' -> "\\t"
                quote -> "\\$quote"
                else -> unit.toString()
            }
        }
    return escaped.joinToString("", quote.toString(), quote.toString())
}

internal fun areEqual(
    left: Any?,
    right: Any?,
): Boolean =
    when {
        left is Undefined && right is Undefined -> true
        isNumber(left) && isNumber(right) -> numberOf(left) == numberOf(right)
        left is List<*> && right is List<*> ->
            left.size == right.size && left.indices.all { areEqual(left[it], right[it]) }
        else -> left == right
    }

/** Negative, zero or positive; numbers, strings and lists of them. */
internal fun compare(
    left: Any?,
    right: Any?,
): Int =
    when {
        isNumber(left) && isNumber(right) -> numberOf(left).compareTo(numberOf(right))
        left is String && right is String -> compareByPoint(left, right)
        else -> throw TemplateException("${typeOf(left)} and ${typeOf(right)} can't be compared")
    }

private fun compareByPoint(
    left: String,
    right: String,
): Int {
    val one = left.codePoints().toArray()
    val other = right.codePoints().toArray()
    val at = (0 until minOf(one.size, other.size)).find { one[it] != other[it] }
    return if (at == null) one.size - other.size else one[at].compareTo(other[at])
}

internal fun contains(
    container: Any?,
    value: Any?,
): Boolean =
    when (container) {
        is String -> (value as? String ?: throw TemplateException("'in' a string needs a string")) in container
        is List<*> -> container.any { areEqual(it, value) }
        is Map<*, *> -> container.containsKey(value)
        is Undefined -> false
        else -> throw TemplateException("'in' ${typeOf(container)} has no meaning")
    }

/** What a loop goes over: a list, the characters of a string, the keys of a dict. */
internal fun itemsOf(value: Any?): List<Any?> =
    when (value) {
        is List<*> -> value
        is Map<*, *> -> value.keys.toList()
        is String -> value.codePoints().toArray().map { String(Character.toChars(it)) }
        is Undefined -> emptyList()
        else -> throw TemplateException("${typeOf(value)} can't be gone through")
    }

/** Python's True and False are numbers. */
internal fun isNumber(value: Any?): Boolean =
    value is Long || value is BigInteger || value is Double || value is Boolean

internal fun numberOf(value: Any?): Double =
    when (value) {
        is Boolean -> if (value) 1.0 else 0.0
        is Long -> value.toDouble()
        is BigInteger -> value.toDouble()
        is Double -> value
        else -> throw TemplateException("${typeOf(value)} is no number")
    }

internal fun integerOf(value: Any?): Long =
    when (value) {
        is Boolean -> if (value) 1 else 0
        is Long -> value
        else -> throw TemplateException("${typeOf(value)} is no whole number")
    }

internal fun typeOf(value: Any?): String =
    when (value) {
        null -> "None"
        is Undefined -> "'${value.name}', which is undefined,"
        is Boolean -> "a truth value"
        is Long, is BigInteger, is Double -> "a number"
        is String -> "a string"
        is List<*> -> "a list"
        is Map<*, *> -> "a dict"
        else -> "an object"
    }
