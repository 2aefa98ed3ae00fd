package io.edgeinfinite.core.tokenizer

/**
 * Reads a pattern: literals, `.`, `[...]` and `[^...]` with ranges and classes, `\s \S \d \D \w \W`,
 * `\p{L}` and its like (see [Characters.property]), `\r \n \t`, `|`, `(...)`, `(?:...)`, `(?i:...)`,
 * `(?=...)`, `(?!...)`, `$`, and `* + ? {m} {m,n}`, each greedy, lazy (`?`) or possessive (`+`).
 *
 * @param pattern the whole of it.
 */
internal class SplitRegexParser(
    private val pattern: String,
) {
    private var at = 0
    private var ignoresCase = false

    /**
     * @throws EdgeInfiniteException something else stands in it.
     */
    fun parse(): Expression {
        val choice = choice()
        if (at < pattern.length) refuse()
        return choice
    }

    private fun choice(): Expression {
        val options = ArrayList<Expression>()
        do options += sequence() while (take("|"))
        return options.singleOrNull() ?: Expression.Choice(options)
    }

    private fun sequence(): Expression {
        val parts = ArrayList<Expression>()
        while (at < pattern.length && pattern[at] !in "|)") parts += repeated(atom())
        return parts.singleOrNull() ?: Expression.Sequence(parts)
    }

    private fun repeated(body: Expression): Expression {
        val (least, most) =
            when {
                take("*") -> 0 to Int.MAX_VALUE
                take("+") -> 1 to Int.MAX_VALUE
                take("?") -> 0 to 1
                take("{") -> bounds()
                else -> return body
            }
        val mode =
            when {
                take("?") -> Expression.Mode.LAZY
                take("+") -> Expression.Mode.POSSESSIVE
                else -> Expression.Mode.GREEDY
            }
        return Expression.Repeat(body, least, most, mode)
    }

    private fun bounds(): Pair<Int, Int> {
        val text = until("}")
        val least = text.substringBefore(',').ifEmpty { "0" }.toIntOrNull() ?: refuse()
        if (',' !in text) return least to least
        val most = text.substringAfter(',')
        return least to if (most.isEmpty()) Int.MAX_VALUE else most.toIntOrNull() ?: refuse()
    }

    private fun atom(): Expression =
        when {
            take("(?:") -> group { it }
            take("(?=") -> group { Expression.LookAhead(it, negative = false) }
            take("(?!") -> group { Expression.LookAhead(it, negative = true) }
            take("(?i:") -> {
                val before = ignoresCase
                ignoresCase = true
                group { it }.also { ignoresCase = before }
            }
            at + 1 < pattern.length && pattern.startsWith("(?", at) -> refuse()
            take("(") -> group { it }
            take("[") -> Expression.One(classUntilBracket())
            take("$") -> Expression.End
            take(".") -> Expression.One { it != '\n'.code }
            pattern[at] in "^*+?{" -> refuse()
            pattern[at] == '\\' -> Expression.One(escape())
            else -> Expression.One(literal(next()))
        }

    private fun group(wrap: (Expression) -> Expression): Expression {
        val body = choice()
        if (!take(")")) refuse()
        return wrap(body)
    }

    private fun classUntilBracket(): CharSet {
        val negative = take("^")
        val sets = ArrayList<CharSet>()
        while (!take("]")) {
            if (at >= pattern.length || pattern.startsWith("&&", at)) refuse()
            sets +=
                when {
                    take("[") -> classUntilBracket()
                    pattern[at] == '\\' && isClassEscape() -> escape()
                    else -> range()
                }
        }
        val all = sets.toTypedArray()
        return CharSet { point -> all.any { point in it } != negative }
    }

    private fun range(): CharSet {
        val first = classMember()
        val isRange = at + 1 < pattern.length && pattern[at] == '-' && pattern[at + 1] != ']'
        if (!isRange) return literal(first)
        at += 1
        val last = classMember()
        return CharSet { it in first..last }
    }

    private fun classMember(): Int {
        if (pattern[at] != '\\') return next()
        at += 1
        return escaped(next())
    }

    private fun isClassEscape() = at + 1 < pattern.length && pattern[at + 1] in "sSdDwWpP"

    private fun escape(): CharSet {
        at += 1
        if (at >= pattern.length) refuse()
        return when (val letter = next().toChar()) {
            's' -> Characters.WHITE_SPACE
            'S' -> not(Characters.WHITE_SPACE)
            'd' -> property("Nd")
            'D' -> not(property("Nd"))
            'w' -> Characters.WORD
            'W' -> not(Characters.WORD)
            'p', 'P' -> {
                if (!take("{")) refuse()
                val name = until("}")
                val negative = (letter == 'P') != name.startsWith("^")
                property(name.removePrefix("^")).let { if (negative) not(it) else it }
            }
            else -> literal(escaped(letter.code))
        }
    }

    private fun escaped(letter: Int): Int =
        when (letter.toChar()) {
            'r' -> '\r'.code
            'n' -> '\n'.code
            't' -> '\t'.code
            'f' -> 0x0c
            'v' -> 0x0b
            in 'a'..'z', in 'A'..'Z', in '0'..'9' -> refuse()
            else -> letter
        }

    private fun literal(point: Int): CharSet {
        if (!ignoresCase) return CharSet { it == point }
        // The two letters outside ASCII whose case folding is an ASCII letter: long s and kelvin.
        val folded = fold(point)
        return CharSet { fold(it) == folded }
    }

    private fun fold(point: Int): Int =
        when (point) {
            0x17f -> 's'.code
            0x212a -> 'k'.code
            else -> Character.toLowerCase(point)
        }

    private fun property(name: String): CharSet = Characters.property(name) ?: refuse()

    private fun not(set: CharSet) = CharSet { it !in set }

    private fun next(): Int = pattern.codePointAt(at).also { at += Character.charCount(it) }

    private fun take(text: String): Boolean {
        if (!pattern.startsWith(text, at)) return false
        at += text.length
        return true
    }

    private fun until(end: String): String {
        val stop = pattern.indexOf(end, at)
        if (stop < 0) refuse()
        return pattern.substring(at, stop).also { at = stop + end.length }
    }

    private fun refuse(): Nothing =
        throw unsupportedTokenizer("the pattern $pattern (at character $at)")
}
