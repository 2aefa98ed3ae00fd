package io.edgeinfinite.core.tokenizer

/** GPT-2's printable character for every byte, and UTF-8 both ways. */
internal object ByteAlphabet {
    private val characters = CharArray(256)
    private val bytes = HashMap<Char, Byte>()

    init {
        var shifted = 256
        for (byte in 0..255) {
            val printable = byte in 0x21..0x7e || byte in 0xa1..0xac || byte in 0xae..0xff
            characters[byte] = if (printable) byte.toChar() else (shifted++).toChar()
            bytes[characters[byte]] = byte.toByte()
        }
    }

    /** The UTF-8 bytes of a text, a character each. */
    fun encode(text: String): String {
        val utf8 = text.toByteArray()
        return String(CharArray(utf8.size) { characters[utf8[it].toInt() and 0xff] })
    }

    /** The bytes of a token; one with a character outside the alphabet stands for itself. */
    fun decode(token: String): ByteArray {
        val decoded = ByteArray(token.length)
        for (index in token.indices) {
            decoded[index] = bytes[token[index]] ?: return token.toByteArray()
        }
        return decoded
    }
}

/** What [decodeUtf8] puts in the place of broken bytes. */
internal const val REPLACEMENT = '\uFFFD'

/**
 * UTF-8 to text; every largest part of a broken character becomes one U+FFFD, as in Rust and as the
 * Unicode standard recommends. Java's own decoders differ between platforms.
 */
internal fun decodeUtf8(bytes: ByteArray): String {
    val text = StringBuilder(bytes.size)
    var at = 0
    while (at < bytes.size) {
        val first = bytes[at].toInt() and 0xff
        val length = sequenceLength(first)
        var end = at + 1
        while (end < at + length && end < bytes.size && continues(first, bytes[end], end - at)) end += 1
        if (length > 0 && end - at == length) {
            text.appendCodePoint(pointOf(bytes, at, length))
        } else {
            text.append(REPLACEMENT)
        }
        at = end
    }
    return text.toString()
}

/** How many bytes at the end are the beginning of a character, which more bytes may complete. */
internal fun unfinishedLength(bytes: ByteArray): Int {
    for (count in 1..minOf(3, bytes.size)) {
        val start = bytes.size - count
        val first = bytes[start].toInt() and 0xff
        if (sequenceLength(first) > count && (1 until count).all { continues(first, bytes[start + it], it) }) {
            return count
        }
    }
    return 0
}

/** Bytes of a character by its first one; 0 where none begins so. */
private fun sequenceLength(first: Int): Int =
    when (first) {
        in 0x00..0x7f -> 1
        in 0xc2..0xdf -> 2
        in 0xe0..0xef -> 3
        in 0xf0..0xf4 -> 4
        else -> 0
    }

/** Whether a byte may be number [index] of a character that begins with [first]. */
private fun continues(
    first: Int,
    byte: Byte,
    index: Int,
): Boolean {
    val value = byte.toInt() and 0xff
    val allowed =
        when {
            index > 1 -> 0x80..0xbf
            first == 0xe0 -> 0xa0..0xbf
            first == 0xed -> 0x80..0x9f
            first == 0xf0 -> 0x90..0xbf
            first == 0xf4 -> 0x80..0x8f
            else -> 0x80..0xbf
        }
    return value in allowed
}

private fun pointOf(
    bytes: ByteArray,
    at: Int,
    length: Int,
): Int {
    val first = bytes[at].toInt() and 0xff
    if (length == 1) return first
    var point = first and (0x7f shr length)
    for (index in 1 until length) point = (point shl 6) or (bytes[at + index].toInt() and 0x3f)
    return point
}
