package io.edgeinfinite.core

import io.edgeinfinite.core.tokenizer.REPLACEMENT
import io.edgeinfinite.core.tokenizer.Tokenizer

/**
 * Streaming detokenisation: pieces of text that never end in half a UTF-8 character.
 *
 * The pieces of [push] and the last one of [flush], joined, are [TextTokenizer.decode] of all
 * tokens; only an unfinished character at the very end is left out.
 */
public class TextStream internal constructor(
    private val tokenizer: Tokenizer,
) : TokenText {
    /** Tokens of the last piece, because the next tokens may need them. */
    private var shown = IntArray(0)

    /** Tokens without text so far. */
    private var held = IntArray(0)

    /** The text that [token] completes, often empty. */
    override fun push(token: Int): String {
        held += token
        val piece = heldText()
        if (piece.isEmpty() || piece.endsWith(REPLACEMENT)) return ""
        shown = held
        held = IntArray(0)
        return piece
    }

    /** The rest of the answer's text, when no token follows. */
    override fun flush(): String {
        var piece = heldText()
        // A real U+FFFD in the answer looks like an unfinished character, but encodes to itself.
        val encoded = tokenizer.encode(piece, addSpecialTokens = false)
        val isItself =
            encoded.size >= held.size &&
                encoded.copyOfRange(encoded.size - held.size, encoded.size).contentEquals(held)
        if (!isItself) piece = piece.trimEnd(REPLACEMENT)
        shown = held
        held = IntArray(0)
        return piece
    }

    private fun heldText(): String {
        val before = decode(shown)
        return decode(shown + held).drop(before.length)
    }

    private fun decode(ids: IntArray) = tokenizer.decode(ids, skipSpecialTokens = true)
}
