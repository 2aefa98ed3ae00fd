package io.edgeinfinite.core

import io.edgeinfinite.core.tokenizer.TokenBytes
import io.edgeinfinite.core.tokenizer.decodeUtf8
import io.edgeinfinite.core.tokenizer.unfinishedLength

/**
 * Streaming detokenisation: pieces of text that never end in half a UTF-8 character.
 *
 * The pieces of [push] and the last one of [flush], joined, are the text of all tokens without the
 * special ones; only an unfinished character at the very end is left out. Broken UTF-8 reads as
 * U+FFFD as soon as it is known to be broken: at most three bytes wait for the next token.
 *
 * @param shown special tokens whose texts aren't left out.
 */
public class TextStream internal constructor(
    private val tokens: TokenBytes,
    private var begins: Boolean,
    private val shown: Set<Int> = emptySet(),
) : TokenText {
    /** The beginning of a character. */
    private var held = ByteArray(0)

    override val holds: Boolean get() = held.isNotEmpty()

    /** The text that [token] completes, often empty. */
    override fun push(token: Int): String {
        if (tokens.isSpecial(token)) return if (token in shown) complete(tokens.of(token)) else ""
        val more = if (begins) tokens.first(token) else tokens.of(token)
        begins = false
        return complete(more)
    }

    private fun complete(more: ByteArray): String {
        val bytes = held + more
        val whole = bytes.size - unfinishedLength(bytes)
        held = bytes.copyOfRange(whole, bytes.size)
        return decodeUtf8(bytes.copyOf(whole))
    }

    /** The rest of the answer's text, when no token follows: nothing, for half a character. */
    override fun flush(): String {
        held = ByteArray(0)
        return ""
    }
}
