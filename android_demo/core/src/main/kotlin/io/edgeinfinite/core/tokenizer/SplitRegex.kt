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
 * their Unicode versions. Backtracking, leftmost, first alternative first, as Oniguruma does. What a
 * match goes back to stands in an array and not on the thread's stack, so words may be of any length.
 *
 * @param pattern see [SplitRegexParser] for what may stand in it.
 * @throws EdgeInfiniteException it holds something else.
 */
internal class SplitRegex(
    pattern: String,
) {
    private val program = RegexProgram.of(SplitRegexParser(pattern).parse())

    /** All of a text, cut into matches and what lies between them; empty matches don't count. */
    fun spans(text: String): List<Span> {
        val characters = CodePoints(text)
        val matcher = RegexMatcher(characters.points)
        val spans = ArrayList<Span>()
        var from = 0
        var at = 0
        while (at < characters.points.size) {
            val end = matcher.match(program, at)
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
