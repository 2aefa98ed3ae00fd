package io.edgeinfinite.core

/** Tokens to text, as [TextStream] does it. */
public interface TokenText {
    /** Whether the newest token ends within a character, whose text comes later. */
    public val holds: Boolean

    /** The text that [token] completes, often empty. */
    public fun push(token: Int): String

    /** The rest of the text, when no token follows. */
    public fun flush(): String
}

/**
 * The text of one answer while it grows, cut before the first stop string. As Python's
 * `answer_text.py`.
 *
 * Text that may be the start of a stop string is held back until it can't be one any more. The
 * answer ends before the stop string whose last character comes first; of several that end there,
 * before the longest. How the text is split into tokens changes nothing.
 *
 * @param stream a new decoder.
 * @param stop stop strings.
 * @throws EdgeInfiniteException a stop string is empty.
 */
internal class AnswerText(
    private val stream: TokenText,
    private val stop: List<String> = emptyList(),
) {
    /** Characters of held text, and the first token that they came with. */
    private class Piece(
        val length: Int,
        val firstToken: Int,
    )

    private val shown = StringBuilder()
    private var held = ""
    private val pieces = ArrayDeque<Piece>()
    private var tokens = 0

    /** The first token whose text isn't out of the stream. */
    private var nextPiece = 0

    init {
        if (stop.any { it.isEmpty() }) {
            throw EdgeInfiniteException(
                ErrorCode.INVALID_ARGUMENT,
                "a stop string is empty; give at least one character",
            )
        }
    }

    /** The stop string that ended the answer; null while there is none. */
    var stoppedBy: String? = null
        private set

    /** What can be shown of the answer so far; all of it after [finish]. */
    val text: String get() = shown.toString()

    /** Whether there are stop strings to look for. */
    val hasStop: Boolean get() = stop.isNotEmpty()

    /** How many of the first tokens have no character that is held back or cut off. */
    val wholeTokens: Int get() = pieces.firstOrNull()?.firstToken ?: nextPiece

    /** Adds a token and returns what can be shown newly; [stoppedBy] says whether the answer ends. */
    fun push(token: Int): String {
        tokens += 1
        return add(stream.push(token))
    }

    /**
     * No token follows: what was held back is part of the answer, unless the last characters complete
     * a stop string. Returns what can be shown newly.
     */
    fun finish(): String {
        if (stoppedBy != null) return ""
        var more = add(stream.flush())
        if (stoppedBy == null) {
            more += show(held.length)
            nextPiece = tokens
        }
        return more
    }

    private fun add(piece: String): String {
        if (piece.isEmpty()) return ""
        val searched = held.length
        held += piece
        pieces.addLast(Piece(piece.length, nextPiece))
        nextPiece = if (stream.holds) tokens - 1 else tokens
        val found = firstStop(searched) ?: return show(held.length - openLength())
        stoppedBy = found.second
        return show(found.first).also { held = "" }
    }

    /** Start of the stop string that ends first, in text held; none ends in the first [searched]. */
    private fun firstStop(searched: Int): Pair<Int, String>? =
        stop
            .map { held.indexOf(it, maxOf(0, searched - it.length + 1)) to it }
            .filter { (start, _) -> start >= 0 }
            .minWithOrNull(compareBy({ (start, one) -> start + one.length }, { (start, _) -> start }))

    /** Characters at the end of the held text that may be the start of a stop string. */
    private fun openLength(): Int {
        val longest = (stop.maxOfOrNull { it.length } ?: 1) - 1
        return (minOf(longest, held.length) downTo 1).firstOrNull { length ->
            stop.any { it.startsWith(held.takeLast(length)) }
        } ?: 0
    }

    /** Moves the first [count] held characters to what can be shown. */
    private fun show(count: Int): String {
        val now = held.take(count)
        shown.append(now)
        held = held.drop(count)
        var left = count
        while (pieces.isNotEmpty() && pieces.first().length <= left) left -= pieces.removeFirst().length
        if (left > 0) pieces.removeFirst().let { pieces.addFirst(Piece(it.length - left, it.firstToken)) }
        return now
    }
}
