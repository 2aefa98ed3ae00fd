package io.edgeinfinite.core.tokenizer

import java.util.concurrent.ConcurrentHashMap

/**
 * What each token of a vocabulary adds to a text that it doesn't begin. As Python's
 * `token_bytes.py`. Thread-safe.
 *
 * Parts of characters are told apart only by the vocabulary: a decoder writes U+FFFD for any of them.
 * So byte-level and byte-fallback tokens are read there. All others are decoded after an anchor, a
 * token of plain text, because decoders take the space before a text's first word away.
 */
internal class TokenBytes(
    private val tokenizer: Tokenizer,
) {
    private val known = ConcurrentHashMap<Int, ByteArray>()
    private val isByteLevel =
        "ByteLevel" in tokenizer.decoderKinds &&
            (tokenizer.decoderKinds - setOf("ByteLevel", "Fuse", "Sequence")).isEmpty()
    private val hasByteTokens = "ByteFallback" in tokenizer.decoderKinds
    private val anchor: IntArray by lazy { findAnchor() }

    /** Whether an answer's text leaves the token out. */
    fun isSpecial(token: Int): Boolean = tokenizer.isSpecial(token)

    /** The bytes of a token; of a special one its name's, of an id without a token none. */
    fun of(token: Int): ByteArray = known.getOrPut(token) { read(token) }

    /** The bytes of a token that begins a text, where decoders may take a space away. */
    fun first(token: Int): ByteArray {
        val within = of(token)
        if (within.firstOrNull() != SPACE) return within
        val alone = decode(intArrayOf(token)).toByteArray()
        val rest = within.size - alone.size
        return if (rest >= 0 && within.copyOfRange(rest, within.size).contentEquals(alone)) alone else within
    }

    private fun read(token: Int): ByteArray {
        val name = tokenizer.tokenOf(token) ?: return ByteArray(0)
        if (isSpecial(token)) return name.toByteArray()
        if (isByteLevel) return ByteAlphabet.decode(name)
        if (hasByteTokens) byteOf(name)?.let { return byteArrayOf(it) }
        return decode(anchor + token).drop(decode(anchor).length).toByteArray()
    }

    /** A token that is text wherever it stands. */
    private fun findAnchor(): IntArray {
        val likely = LIKELY_ANCHORS.asSequence().mapNotNull(tokenizer::idOf)
        val others =
            tokenizer.ids().filter { id -> !isSpecial(id) && tokenizer.tokenOf(id)?.let(::byteOf) == null }
        val found =
            (likely + others).firstOrNull { id ->
                val text = decode(intArrayOf(id))
                text.isNotBlank() && REPLACEMENT !in text
            }
        return if (found == null) IntArray(0) else intArrayOf(found)
    }

    private fun decode(ids: IntArray) = tokenizer.decode(ids, skipSpecialTokens = true)

    private companion object {
        const val SPACE = ' '.code.toByte()
        val LIKELY_ANCHORS = listOf("a", "A", "e", "the", "0")
    }
}
