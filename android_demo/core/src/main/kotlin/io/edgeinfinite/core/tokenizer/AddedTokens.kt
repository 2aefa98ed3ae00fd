package io.edgeinfinite.core.tokenizer

/**
 * A token that is found in the text before anything else, such as `<|im_end|>`.
 *
 * @property singleWord only where no word character stands beside it.
 * @property stripsLeft includes the white space before it.
 * @property stripsRight includes the white space after it.
 * @property normalized looked for in the normalized text.
 * @property special left out when decoding.
 */
internal data class AddedToken(
    val id: Int,
    val content: String,
    val singleWord: Boolean,
    val stripsLeft: Boolean,
    val stripsRight: Boolean,
    val normalized: Boolean,
    val special: Boolean,
)

/** A piece of text: a found token, or what lies between two, from UTF-16 unit [start] on. */
internal class Piece(
    val text: String,
    val start: Int,
    val token: Int?,
)

/**
 * Finds added tokens: the leftmost first, and the longest of several at one place.
 *
 * @param tokens by the text to look for.
 */
internal class AddedTokenFinder(
    private val tokens: Map<String, AddedToken>,
) {
    private val names = Names(tokens.keys)

    /** The text cut into tokens and what lies between, nothing empty. */
    fun pieces(text: String): List<Piece> {
        val pieces = ArrayList<Piece>()
        var from = 0
        var at = 0
        while (at < text.length) {
            val content = names.at(text, at)
            if (content == null) {
                at += 1
                continue
            }
            val token = tokens.getValue(content)
            var start = at
            var end = at + content.length
            at = end
            if (token.singleWord && (endsWithWord(text, start) || startsWithWord(text, end))) continue
            if (token.stripsLeft) while (start > from && isSpace(text[start - 1])) start -= 1
            if (token.stripsRight) while (end < text.length && isSpace(text[end])) end += 1
            if (from < start) pieces += Piece(text.substring(from, start), from, null)
            pieces += Piece(text.substring(start, end), start, token.id)
            from = end
        }
        if (from < text.length) pieces += Piece(text.substring(from), from, null)
        return pieces
    }

    private fun endsWithWord(
        text: String,
        end: Int,
    ) = end > 0 && text.codePointBefore(end) in Characters.WORD

    private fun startsWithWord(
        text: String,
        start: Int,
    ) = start < text.length && text.codePointAt(start) in Characters.WORD

    private fun isSpace(unit: Char) = Characters.isWhiteSpace(unit.code)
}
