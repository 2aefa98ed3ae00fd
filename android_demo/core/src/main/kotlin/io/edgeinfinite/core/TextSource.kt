package io.edgeinfinite.core

import kotlinx.serialization.Serializable

/**
 * A text that is read piece by piece, as it may be too long to be held.
 *
 * It must stay the same until it is read to its end: a stopped reading goes on at an offset.
 */
public interface TextSource {
    /** Where the text ends, in the unit of the offsets, such as bytes. */
    public val length: Long

    /**
     * The piece at an offset: 0, or where another piece ended. It blocks, on the engine's thread.
     *
     * @return null at the end.
     */
    public fun pieceAt(offset: Long): TextPiece?
}

/**
 * A part of a text. A blank line stands between it and the next one, whose white space at both ends
 * doesn't count, so it should end where a paragraph does.
 *
 * @property end the offset of what follows.
 */
public class TextPiece(
    public val text: String,
    public val end: Long,
)

/**
 * What a reading has still to take from its source.
 *
 * @property offset where the next piece begins, of [length].
 * @property tokens of the pieces before.
 */
@Serializable
internal data class Pending(
    val offset: Long,
    val length: Long,
    val tokens: Long,
) {
    /** About how many tokens the rest has, if it is like what was taken. */
    val estimate: Long get() = if (offset == 0L) 0 else ((length - offset) * (tokens.toDouble() / offset)).toLong()

    /** After a piece of [more] tokens. */
    fun after(
        end: Long,
        more: Int,
    ) = Pending(end, length, tokens + more)
}
