package io.edgeinfinite.app.documents

/**
 * Word's `EQ` fields as text, as Python's `eq_fields.py` reads them: formulas, and readings above words, from before
 * Word had formulas. Such a field draws what its instruction says, and has no text that could be read.
 */
internal object EqFields {
    private val EQ = Regex("^\\s*EQ\\b", RegexOption.IGNORE_CASE)

    /** How a result is to look; it says nothing. */
    private val FORMAT = Regex("\\\\\\*\\s*(?:\"[^\"]*\"|[^\\s\\\\()]+)")
    private val ANY_SWITCH = Regex("\\\\[a-z]+", RegexOption.IGNORE_CASE)

    /** What an `EQ` field shows; null for any other field. */
    fun of(instruction: String): String? {
        val found = EQ.find(instruction) ?: return null
        val text = instruction.substring(found.range.last + 1).replace(FORMAT, "")
        val shown =
            try {
                EqReader(text).text("")
            } catch (_: TooDeepException) {
                text.replace(ANY_SWITCH, " ")
            }
        return MarkdownInline.words(shown)
    }
}

/** Reads an instruction from left to right. */
private class EqReader(
    private val source: String,
) {
    private var at = 0
    private var depth = 0

    /** What stands before the next of some signs, or before the end. */
    fun text(ends: String): String {
        val out = StringBuilder()
        while (at < source.length && source[at] !in ends) {
            val switch = SWITCH.matchAt(source, at)
            val sign = source[at]
            if (switch != null) {
                at = switch.range.last + 1
                out.append(drawn(switch.groupValues[1].lowercase()))
            } else if (sign == '\\') { // a sign that would mean something without it
                out.append(source, minOf(at + 1, source.length), minOf(at + 2, source.length))
                at = minOf(at + 2, source.length)
            } else {
                at += 1
                out.append(sign)
                if (sign == '(') out.append(inner())
            }
        }
        return out.toString()
    }

    /** What stands in brackets that belong to the text. */
    private fun inner(): String {
        val text = deeper(")")
        if (at == source.length) return text
        at += 1
        return "$text)"
    }

    private fun deeper(ends: String): String {
        depth += 1
        if (depth > DEEPEST) throw TooDeepException()
        return text(ends).also { depth -= 1 }
    }

    private fun drawn(switch: String): String {
        val options = HashMap<String, String>()
        while (true) {
            val found = OPTION.matchAt(source, at) ?: break
            at = found.range.last + 1
            val (bracket, sign, symbol, name, number) = found.destructured
            when {
                symbol.isNotEmpty() -> options["symbol"] = symbol
                bracket.isNotEmpty() -> options[bracket.lowercase()] = sign
                else -> options[name.lowercase()] = number
            }
        }
        var opens = at
        while (opens < source.length && source[opens].isWhitespace()) opens += 1
        if (source.getOrNull(opens) != '(') return ""
        at = opens + 1
        val parts = parts()
        if (switch == "s") {
            val isLower = "do" in options && "up" !in options
            return Formulas.raised(if (isLower) "_" else "^", parts.joinToString(" "))
        }
        return drawn(switch, parts, options)
    }

    /**
     * What stands in a switch's brackets, separated by commas or, where the comma is that of numbers, by semicolons.
     */
    private fun parts(): List<String> {
        val parts = ArrayList<String>()
        val separators = StringBuilder()
        while (true) {
            parts += deeper(",;)").trim()
            val sign = source.getOrNull(at)
            at = minOf(at + 1, source.length)
            if (sign != ',' && sign != ';') break
            separators.append(sign)
        }
        if (';' !in separators) return parts
        val joined = arrayListOf(StringBuilder(parts[0]))
        for ((sign, part) in separators.toList().zip(parts.drop(1))) {
            if (sign == ';') joined += StringBuilder(part) else joined.last().append(',').append(part)
        }
        return joined.map { it.toString() }
    }

    private fun drawn(
        switch: String,
        parts: List<String>,
        options: Map<String, String>,
    ): String =
        when (switch) {
            "a" -> {
                val columns = maxOf(1, options["co"].orEmpty().take(MOST_DIGITS).toIntOrNull() ?: 1)
                parts.chunked(columns).joinToString("; ", "[", "]") { it.joinToString(", ") }
            }
            "b" -> bracketed(parts, options)
            "d" -> " "
            "f" -> Formulas.grouped(parts[0]) + "/" + Formulas.grouped(parts.drop(1).joinToString(", "))
            "i" -> integral(parts, options)
            "o" -> overEachOther(parts)
            "r" -> WordFormulas.root(parts.last(), if (parts.size > 1) parts[0].trim() else "")
            else -> parts.joinToString(", ")
        }

    private fun bracketed(
        parts: List<String>,
        options: Map<String, String>,
    ): String {
        val both = options["bc"]
        val opening = options["lc"] ?: both ?: if ("rc" in options) "" else "("
        val closing = options["rc"] ?: both?.let { PAIRS[it] ?: it } ?: if ("lc" in options) "" else ")"
        return opening + parts.joinToString(", ") + closing
    }

    private fun integral(
        parts: List<String>,
        options: Map<String, String>,
    ): String {
        val usual =
            when {
                "su" in options -> "∑"
                "pr" in options -> "∏"
                else -> "∫"
            }
        val sign = options["symbol"] ?: usual
        val of = { place: Int -> parts.getOrElse(place) { "" } }
        return "$sign${Formulas.raised("_", of(0))}${Formulas.raised("^", of(1))} ${of(2)}"
    }

    /** A reading above its word is left out, as those of ruby are. */
    private fun overEachOther(parts: List<String>): String {
        val words = parts.filter { !it.startsWith('^') && !it.startsWith('_') }
        return words.ifEmpty { parts }.joinToString("")
    }

    private companion object {
        const val DEEPEST = 60
        const val MOST_DIGITS = 6
        val PAIRS = mapOf("(" to ")", "[" to "]", "{" to "}", "<" to ">")
        val SWITCH = Regex("\\\\([abdfilorsx])(?![a-z])", RegexOption.IGNORE_CASE)
        val OPTION =
            Regex(
                "\\s*\\\\(?:([lrb]c)\\s*\\\\?(.)|[fv]c\\s*\\\\?(.)|([a-z]{2})\\s*(-?[0-9]*))",
                setOf(RegexOption.IGNORE_CASE, RegexOption.DOT_MATCHES_ALL),
            )
    }
}
