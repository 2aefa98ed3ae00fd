package io.edgeinfinite.core.tokenizer

/** A part of a text, from UTF-16 unit [start] to before [end], that a pattern matched or didn't. */
internal data class Span(
    val start: Int,
    val end: Int,
    val isMatch: Boolean,
)

/**
 * A regular expression as tokenizers' files hold them, with the same matches on every platform.
 *
 * `java.util.regex` is ICU on Android and the JDK's own elsewhere; the two differ in `\s` and in
 * their Unicode versions. Backtracking, leftmost, first alternative first, as Oniguruma does.
 *
 * @param pattern see [SplitRegexParser] for what may stand in it.
 * @throws EdgeInfiniteException it holds something else.
 */
internal class SplitRegex(
    pattern: String,
) {
    private val start: Node = compile(SplitRegexParser(pattern).parse(), Accept)

    /** All of a text, cut into matches and what lies between them; empty matches don't count. */
    fun spans(text: String): List<Span> {
        val characters = CodePoints(text)
        val spans = ArrayList<Span>()
        var from = 0
        var at = 0
        while (at < characters.points.size) {
            val end = start.match(characters.points, at)
            if (end <= at) {
                at += 1
                continue
            }
            if (from < at) spans += Span(characters.start(from), characters.start(at), false)
            spans += Span(characters.start(at), characters.start(end), true)
            from = end
            at = end
        }
        if (from < characters.points.size) {
            spans += Span(characters.start(from), text.length, false)
        }
        return spans
    }
}

/** What a pattern consists of. */
internal sealed interface Expression {
    data class One(
        val set: CharSet,
    ) : Expression

    data class Sequence(
        val parts: List<Expression>,
    ) : Expression

    data class Choice(
        val options: List<Expression>,
    ) : Expression

    data class Repeat(
        val body: Expression,
        val least: Int,
        val most: Int,
        val mode: Mode,
    ) : Expression

    data class LookAhead(
        val body: Expression,
        val negative: Boolean,
    ) : Expression

    data object End : Expression

    enum class Mode { GREEDY, LAZY, POSSESSIVE }
}

/** One step of matching: the end of the match from [at] on, or -1. */
private fun interface Node {
    fun match(
        text: IntArray,
        at: Int,
    ): Int
}

private val Accept = Node { _, at -> at }

private fun compile(
    expression: Expression,
    next: Node,
): Node =
    when (expression) {
        is Expression.One -> {
            val set = expression.set
            Node { text, at ->
                if (at < text.size && text[at] in set) next.match(text, at + 1) else -1
            }
        }
        is Expression.Sequence ->
            expression.parts.foldRight(next) { part, following -> compile(part, following) }
        is Expression.Choice -> {
            val options = expression.options.map { compile(it, next) }
            Node { text, at ->
                options.firstNotNullOfOrNull { it.match(text, at).takeIf { end -> end >= 0 } } ?: -1
            }
        }
        is Expression.Repeat -> compileRepeat(expression, next)
        is Expression.LookAhead -> {
            val body = compile(expression.body, Accept)
            Node { text, at ->
                val found = body.match(text, at) >= 0
                if (found == expression.negative) -1 else next.match(text, at)
            }
        }
        is Expression.End -> Node { text, at -> if (at == text.size) next.match(text, at) else -1 }
    }

private fun compileRepeat(
    repeat: Expression.Repeat,
    next: Node,
): Node {
    val body = repeat.body
    if (body is Expression.One) return SetLoop(body.set, repeat, next)
    if (repeat.mode == Expression.Mode.POSSESSIVE) {
        val whole = compile(repeat.copy(mode = Expression.Mode.GREEDY), Accept)
        return Node { text, at ->
            val end = whole.match(text, at)
            if (end < 0) -1 else next.match(text, end)
        }
    }
    val tail =
        if (repeat.most == Int.MAX_VALUE) {
            if (leastLength(body) == 0) throw unsupportedTokenizer("an empty group, repeated")
            GroupLoop(body, repeat.mode, next)
        } else {
            (repeat.least until repeat.most).fold(next) { following, _ ->
                optional(compile(body, following), next, repeat.mode)
            }
        }
    return (0 until repeat.least).fold(tail) { following, _ -> compile(body, following) }
}

private fun optional(
    taken: Node,
    skipped: Node,
    mode: Expression.Mode,
): Node {
    val (first, second) = if (mode == Expression.Mode.LAZY) skipped to taken else taken to skipped
    return Node { text, at ->
        val end = first.match(text, at)
        if (end >= 0) end else second.match(text, at)
    }
}

/** A repeated character class, without recursion: runs of spaces may be long. */
private class SetLoop(
    private val set: CharSet,
    private val repeat: Expression.Repeat,
    private val next: Node,
) : Node {
    override fun match(
        text: IntArray,
        at: Int,
    ): Int {
        var limit = at
        while (limit < text.size && limit - at < repeat.most && text[limit] in set) limit += 1
        val least = at + repeat.least
        if (limit < least) return -1
        return when (repeat.mode) {
            Expression.Mode.POSSESSIVE -> next.match(text, limit)
            Expression.Mode.GREEDY -> first(text, limit downTo least)
            Expression.Mode.LAZY -> first(text, least..limit)
        }
    }

    private fun first(
        text: IntArray,
        ends: IntProgression,
    ): Int {
        for (end in ends) {
            val match = next.match(text, end)
            if (match >= 0) return match
        }
        return -1
    }
}

/** A group repeated any number of times; every turn takes something, so that it ends. */
private class GroupLoop(
    body: Expression,
    mode: Expression.Mode,
    next: Node,
) : Node {
    private val step = optional(compile(body, this), next, mode)

    override fun match(
        text: IntArray,
        at: Int,
    ): Int = step.match(text, at)
}

/** Fewest code points that an expression matches. */
private fun leastLength(expression: Expression): Int =
    when (expression) {
        is Expression.One -> 1
        is Expression.Sequence -> expression.parts.sumOf(::leastLength)
        is Expression.Choice -> expression.options.minOf(::leastLength)
        is Expression.Repeat -> expression.least * leastLength(expression.body)
        is Expression.LookAhead, is Expression.End -> 0
    }
