package io.edgeinfinite.core.jinja

import java.math.BigDecimal
import java.math.BigInteger
import java.math.MathContext
import java.math.RoundingMode

/**
 * How JSON is written: the options of Python's `json.dumps`.
 *
 * @property indent blanks for each level, on lines of their own; null for one line.
 * @property item between two items; with [indent] a new line follows it.
 * @property key between a key and its value.
 * @property isAscii whether all other characters are escaped.
 * @property sorts whether keys stand in their order.
 */
internal class JsonStyle(
    val indent: Int? = null,
    val item: String = if (indent == null) ", " else ",",
    val key: String = ": ",
    val isAscii: Boolean = false,
    val sorts: Boolean = false,
)

/**
 * Python's `json.dumps(value, ensure_ascii=False)`, and with other options.
 *
 * @throws TemplateException the value isn't one of JSON's.
 */
internal fun jsonOf(
    value: Any?,
    style: JsonStyle = JsonStyle(),
    depth: Int = 0,
): String =
    when (value) {
        null -> "null"
        is Boolean -> value.toString()
        is Double -> floatText(value, "NaN", "Infinity")
        is String -> jsonText(value, style.isAscii)
        is List<*> -> block(value.map { jsonOf(it, style, depth + 1) }, "[]", style, depth)
        is Map<*, *> -> {
            val entries = value.entries.map { (key, one) -> keyOf(key) to one }
            val ordered =
                if (style.sorts) entries.sortedWith { one, other -> compare(one.first, other.first) } else entries
            val written =
                ordered.map { (key, one) ->
                    jsonText(key, style.isAscii) + style.key + jsonOf(one, style, depth + 1)
                }
            block(written, "{}", style, depth)
        }
        is Long, is BigInteger -> value.toString()
        else -> throw TemplateException("${typeOf(value)} can't be written as JSON")
    }

private fun keyOf(key: Any?): String =
    when (key) {
        is String -> key
        null, is Boolean, is Long, is Double -> jsonOf(key)
        else -> throw TemplateException("${typeOf(key)} can't be a key of JSON")
    }

private fun block(
    parts: List<String>,
    brackets: String,
    style: JsonStyle,
    depth: Int,
): String {
    if (parts.isEmpty()) return brackets
    val (open, close) = brackets.map { it.toString() }
    if (style.indent == null) return parts.joinToString(style.item, open, close)
    val line = "\n" + " ".repeat(style.indent * (depth + 1))
    return parts.joinToString(style.item + line, open + line, "\n" + " ".repeat(style.indent * depth) + close)
}

private fun jsonText(
    text: String,
    isAscii: Boolean,
): String {
    val escaped = StringBuilder("\"")
    for (unit in text) {
        when {
            unit == '"' -> escaped.append("\\\"")
            unit == '\\' -> escaped.append("\\\\")
            unit == '\n' -> escaped.append("\\n")
            unit == '\r' -> escaped.append("\\r")
            unit == '\t' -> escaped.append("\\t")
            unit == '\b' -> escaped.append("\\b")
            unit == '\u000c' -> escaped.append("\\f")
            unit < ' ' || (isAscii && unit > '\u007e') ->
                escaped.append("\\u").append(unit.code.toString(16).padStart(4, '0'))
            else -> escaped.append(unit)
        }
    }
    return escaped.append('"').toString()
}

/**
 * Python's `repr` of a float: the fewest digits that give it back.
 *
 * Java's own text has one too many for some before JDK 19, and another form.
 */
internal fun floatText(
    value: Double,
    nan: String = "nan",
    infinity: String = "inf",
): String {
    if (value.isNaN()) return nan
    val sign = if (1 / value < 0 || value < 0) "-" else ""
    val size = Math.abs(value)
    if (size.isInfinite()) return sign + infinity
    if (size == 0.0) return "${sign}0.0"
    val exact = BigDecimal(size)
    val shortest =
        (1..MOST_DIGITS).asSequence()
            .map { exact.round(MathContext(it, RoundingMode.HALF_EVEN)) }
            .first { it.toDouble() == size }
    val digits = shortest.unscaledValue().toString().trimEnd('0')
    val exponent = shortest.precision() - shortest.scale() - 1
    val text =
        when {
            exponent < LEAST_PLAIN || exponent > MOST_PLAIN -> {
                val fraction = if (digits.length > 1) "." + digits.drop(1) else ""
                val power = Math.abs(exponent).toString().padStart(2, '0')
                "${digits[0]}${fraction}e${if (exponent < 0) "-" else "+"}$power"
            }
            exponent < 0 -> "0." + "0".repeat(-exponent - 1) + digits
            digits.length <= exponent + 1 -> digits.padEnd(exponent + 1, '0') + ".0"
            else -> digits.take(exponent + 1) + "." + digits.drop(exponent + 1)
        }
    return sign + text
}

private const val MOST_DIGITS = 17
private const val LEAST_PLAIN = -4
private const val MOST_PLAIN = 15
