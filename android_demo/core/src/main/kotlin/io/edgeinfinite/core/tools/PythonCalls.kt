package io.edgeinfinite.core.tools

import io.edgeinfinite.core.jinja.textOf
import java.math.BigInteger
import java.text.Normalizer

/**
 * `[name(key="text", other=1), ...]`, of Python's literals and JSON's words.
 *
 * Python's runtime lets Python itself read them. This is the part of its grammar that literals need.
 * Characters by name (`\N{...}`) and a literal behind a sign in parentheses are no literals here.
 */
internal object PythonCalls : Body() {
    override fun calls(
        body: String,
        tools: Map<String, Tool>,
    ): List<Call> = PythonReader(strip(body)).calls()
}

private class PythonReader(
    text: String,
) {
    private val source = PythonSource(text)

    /** The calls of a list, of a tuple, or the one that stands alone. */
    fun calls(): List<Call> {
        source.skip()
        val calls =
            when {
                source.open('[') -> upTo(']')
                source.open('{') -> upTo('}')
                source.open('(') -> upTo(')')
                else -> alone()
            }
        source.end()
        if (calls.isEmpty()) throw NoCallException("no calls")
        return calls
    }

    private fun alone(): List<Call> {
        val calls = arrayListOf(call())
        while (source.take(",") && !source.isAtEnd) calls += call()
        return calls
    }

    private fun upTo(close: Char): List<Call> = ArrayList<Call>().also { items(close) { it += call() } }

    private fun items(
        close: Char,
        item: () -> Unit,
    ) {
        while (!source.close(close)) {
            item()
            if (!source.take(",") && !source.isNext(close.toString())) throw NoCallException("unclosed")
        }
    }

    private fun call(): Call {
        val name = StringBuilder(identifier())
        while (source.take(".")) name.append('.').append(identifier())
        if (!source.open('(')) throw NoCallException("no call by keywords")
        val given = LinkedHashMap<String, Any?>()
        items(')') {
            val key = identifier()
            if (!source.take("=")) throw NoCallException("no keyword")
            given[key] = literal()
        }
        return callOf(mapOf("name" to name.toString(), "arguments" to given))
    }

    private fun identifier(): String {
        val name = source.word()
        if (name == null || name in KEYWORDS) throw NoCallException("no name")
        return Normalizer.normalize(name, Normalizer.Form.NFKC).also { source.skip() }
    }

    private fun literal(): Any? =
        when {
            source.open('[') -> ArrayList<Any?>().also { list -> items(']') { list += literal() } }
            source.open('{') -> dict()
            source.open('(') -> inParentheses()
            else -> constant(JSON_WORDS)
        }

    private fun dict(): Map<String, Any?> {
        val pairs = LinkedHashMap<String, Any?>()
        items('}') {
            val key = textOf(constant(emptyMap()))
            if (!source.take(":")) throw NoCallException("no key")
            pairs[key] = literal()
        }
        return pairs
    }

    /** A tuple, or one literal. */
    private fun inParentheses(): Any? {
        if (source.close(')')) return emptyList<Any?>()
        val first = literal()
        if (source.close(')')) return first
        if (!source.take(",")) throw NoCallException("unclosed")
        return arrayListOf(first).also { list -> items(')') { list += literal() } }
    }

    private fun constant(words: Map<String, Any?>): Any? {
        source.text()?.let { return texts(it) }
        val isNegative = source.take("-")
        if (isNegative || source.take("+")) {
            val number = PythonNumber(source).read() ?: throw NoCallException("no number")
            source.skip()
            return if (isNegative) negative(number) else number
        }
        PythonNumber(source).read()?.let { number ->
            source.skip()
            return number
        }
        val word = source.word()
        source.skip()
        val known = if (word in PYTHON_WORDS) PYTHON_WORDS else words
        if (word !in known) throw NoCallException("no literal")
        return known[word]
    }

    /** Texts that follow one another are one. */
    private fun texts(first: String): String {
        val text = StringBuilder(first)
        source.skip()
        while (true) {
            text.append(source.text() ?: return text.toString())
            source.skip()
        }
    }

    private fun negative(number: Any): Any =
        when (number) {
            is Double -> -number
            else -> whole(BigInteger(number.toString()).negate())
        }

    private companion object {
        val PYTHON_WORDS = mapOf("True" to true, "False" to false, "None" to null)
        val JSON_WORDS = mapOf("true" to true, "false" to false, "null" to null)
        val KEYWORDS =
            listOf(
                "False None True and as assert async await break class continue def del elif else except",
                "finally for from global if import in is lambda nonlocal not or pass raise return try while",
                "with yield",
            ).flatMapTo(HashSet()) { it.split(" ") }
    }
}

/** The least of a whole number's types. */
private fun whole(number: BigInteger): Any = if (number.bitLength() < Long.SIZE_BITS) number.toLong() else number

/** A number of Python's notation, without a sign. */
private class PythonNumber(
    private val source: PythonSource,
) {
    /** The number, null for none. */
    fun read(): Any? {
        val start = source.at
        val radix = RADIXES.entries.find { source.text.startsWith(it.key, start, ignoreCase = true) }
        val number =
            if (radix != null) {
                source.at += 2
                val digits = digits(radix.value, leads = true) ?: throw NoCallException("no digits")
                if (digits.length > MOST_DIGITS * MOST_BITS) throw NoCallException("too long")
                whole(BigInteger(digits, radix.value))
            } else {
                decimal() ?: return null
            }
        if (source.isInWord) throw NoCallException("a number and a name in one")
        if (number is BigInteger && number.toString().length > MOST_DIGITS) throw NoCallException("too long")
        return number
    }

    private fun decimal(): Any? {
        val before = digits(10)
        val hasPoint = source.isNext(".") && (before != null || isDigit(source.text.getOrNull(source.at + 1), 10))
        if (before == null && !hasPoint) return null
        if (hasPoint) source.at += 1
        val after = if (hasPoint) digits(10) else null
        val power = power()
        if (hasPoint || power != null) return "${before ?: "0"}.${after ?: "0"}e${power ?: "0"}".toDouble()
        val digits = checkNotNull(before)
        if (digits.length > MOST_DIGITS) throw NoCallException("too long")
        if (digits.startsWith("0") && digits.any { it != '0' }) throw NoCallException("a leading zero")
        return whole(BigInteger(digits))
    }

    private fun power(): String? {
        val start = source.at
        if (!source.isNext("e") && !source.isNext("E")) return null
        source.at += 1
        val sign = source.text.getOrNull(source.at)?.takeIf { it in "+-" }?.also { source.at += 1 }
        val digits = digits(10)
        if (digits == null) source.at = start
        return digits?.let { "${sign ?: ""}$it" }
    }

    /** Digits with a `_` between two of them at most; [leads] allows one before them. */
    private fun digits(
        radix: Int,
        leads: Boolean = false,
    ): String? {
        val digits = StringBuilder()
        while (true) {
            val unit = source.text.getOrNull(source.at)
            val next = source.text.getOrNull(source.at + 1)
            when {
                isDigit(unit, radix) -> digits.append(unit)
                unit == '_' && (leads || digits.isNotEmpty()) && isDigit(next, radix) -> Unit
                else -> return digits.toString().ifEmpty { null }
            }
            source.at += 1
        }
    }

    private fun isDigit(
        unit: Char?,
        radix: Int,
    ) = unit != null && unit < '\u0080' && Character.digit(unit, radix) >= 0

    private companion object {
        val RADIXES = mapOf("0x" to 16, "0o" to 8, "0b" to 2)

        /** Python's for whole numbers. */
        const val MOST_DIGITS = 4_300
        const val MOST_BITS = 4 // of a decimal digit
    }
}
