package io.edgeinfinite.app.documents

import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import org.mozilla.universalchardet.UniversalDetector
import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.Charset
import java.nio.charset.CharsetDecoder
import java.nio.charset.CodingErrorAction

/**
 * A text and what the person is to know of it.
 *
 * @property guess the encoding that it was taken for; null where the file tells.
 * @property left what isn't as the file has it; null if nothing.
 */
internal data class Decoded(
    val text: String,
    val guess: String? = null,
    val left: Problem? = null,
)

/**
 * One decoder for the texts of all documents, as Python's `encoding.py`: a mark, the encoding that the text states,
 * UTF-8, UTF-8 with few errors, and a guess, which is told.
 */
internal object TextDecoder {
    const val LOOKED_AT = 1 shl 20
    const val REPLACEMENT = '\ufffd'

    /** What begins a sign of two bytes in texts in seven bits: Japanese and Korean ones, Korean ones alone, HZ. */
    const val ESCAPE = "\u001b$"
    const val KOREAN = "\u001b$)C"
    const val HZ = "~{"

    /** What [HzStream] gives. */
    const val OF_HZ = "GB18030"

    /** Preferred where nothing fits; it holds Latin-1's letters. */
    private const val COMMONEST = "windows-1252"

    /** The Macintosh's Cyrillic and DOS fit too many texts by chance, German ones among them. */
    private val NOT_GUESSED = setOf("UTF-8", "MACCYRILLIC", "IBM855", "IBM866")

    // UTF-32 first: its mark begins with UTF-16's.
    private val MARKS =
        listOf(
            "EFBBBF" to "UTF-8",
            "FFFE0000" to "UTF-32LE",
            "0000FEFF" to "UTF-32BE",
            "FFFE" to "UTF-16LE",
            "FEFF" to "UTF-16BE",
        )

    private const val HEAD = 4096
    const val FEW = 1000

    /** Zero bytes, all in one half, that aren't there by chance. */
    private const val SOME = 4
    const val SHARE_OF_ERRORS = 20

    /** What no text in a guessed encoding holds. */
    val NO_CONTROL = { sign: Char -> sign < ' ' && sign !in "\t\n\r\u000c" }

    /** What text by chance holds. */
    private val NO_MEANING = { sign: Char -> !sign.isDefined() || sign.category == CharCategory.PRIVATE_USE }

    /**
     * @param name the document's, for errors.
     * @throws ProblemException it is no text, or in no encoding that is known.
     */
    fun decoded(
        name: String,
        bytes: ByteArray,
        stated: String? = null,
    ): Decoded {
        val (mark, encoding) = markOf(bytes)
        val found =
            if (mark.isNotEmpty()) {
                marked(name, bytes, encoding, mark.length / 2)
            } else {
                unmarked(bytes) ?: stated?.let { stated(name, bytes, it) } ?: byEscapes(bytes) ?: utf8(name, bytes)
                    ?: guessed(name, bytes)
            }
        return withoutNull(name, found)
    }

    /** The mark at a text's beginning in hexadecimal digits, and the encoding that it tells. */
    fun markOf(start: ByteArray): Pair<String, String> {
        val first = start.take(4).joinToString("") { "%02X".format(it) }
        return MARKS.firstOrNull { first.startsWith(it.first) } ?: ("" to "UTF-8")
    }

    fun guessesOf(start: ByteArray): List<String> {
        val detector = UniversalDetector()
        detector.handleData(start, 0, minOf(start.size, LOOKED_AT))
        detector.dataEnd()
        val found = detector.detectedCharset?.takeIf { it !in NOT_GUESSED && Charset.isSupported(it) }
        return listOfNotNull(found, COMMONEST)
    }

    /** Whether a text that isn't right UTF-8 is it but for a few errors. */
    fun isNearlyUtf8(
        right: Long,
        errors: Long,
    ) = errors > 0 && right >= 2 * errors

    /** Whether a text with a mark is in the encoding that it tells. */
    fun hasFew(
        errors: Long,
        all: Long,
    ) = (errors - 1) * SHARE_OF_ERRORS < all - 1

    fun errors(
        name: String,
        encoding: String,
        count: Long,
    ) = if (count == 0L) null else Problem(R.string.document_errors, listOf(name, encoding, "$count"))

    fun decoder(
        encoding: String,
        action: CodingErrorAction,
    ): CharsetDecoder = Charset.forName(encoding).newDecoder().onMalformedInput(action).onUnmappableCharacter(action)

    fun noText(name: String) = ProblemException(R.string.document_unknown, name)

    private fun marked(
        name: String,
        bytes: ByteArray,
        encoding: String,
        from: Int,
    ): Decoded {
        strictly(bytes, encoding, from)?.let { return Decoded(it) }
        val text = leniently(bytes, encoding, from)
        val errors = text.count { it == REPLACEMENT }
        if (!hasFew(errors.toLong(), text.length.toLong())) {
            throw ProblemException(R.string.document_false_mark, name, encoding)
        }
        return Decoded(text, left = errors(name, encoding, errors.toLong()))
    }

    private fun unmarked(bytes: ByteArray): Decoded? {
        for (encoding in unmarkedIn(bytes, bytes.size.toLong())) {
            val text = strictly(bytes, encoding, 0) ?: continue
            if (text.none(NO_CONTROL)) return Decoded(text, encoding)
        }
        return null
    }

    /**
     * What a text without a mark may be: UTF-16, where in one half of the bytes most or some are zero, in the other
     * none is.
     *
     * @param start its beginning.
     * @param size of all of it, in bytes.
     */
    fun unmarkedIn(
        start: ByteArray,
        size: Long,
    ): List<String> {
        val head = minOf(start.size, HEAD) and 1.inv()
        if (size % 2 != 0L || head < 4) return emptyList()
        val zeros = IntArray(2)
        for (at in 0 until head) if (start[at] == 0.toByte()) zeros[at % 2] += 1
        return listOf("UTF-16LE" to 1, "UTF-16BE" to 0)
            .filter { (encoding, high) ->
                // In scripts other than Latin only spaces and ends of lines have a zero.
                val isMost = zeros[high] * 4 >= head
                val isSome = zeros[high] >= SOME && String(start, 0, head, Charset.forName(encoding)).none(NO_MEANING)
                zeros[high] > 0 && zeros[1 - high] == 0 && (isMost || isSome)
            }.map { it.first }
    }

    private fun stated(
        name: String,
        bytes: ByteArray,
        stated: String,
    ): Decoded? {
        val encoding = EncodingNames.known(stated) ?: return null
        if (encoding.startsWith("UTF-")) return null
        strictly(bytes, encoding, 0)?.let { return Decoded(it) }
        if (strictly(bytes, "UTF-8", 0) != null) return null
        val text = leniently(bytes, encoding, 0)
        val errors = text.count { it == REPLACEMENT }
        if (errors > 1 && errors * SHARE_OF_ERRORS >= text.length) return null
        return Decoded(text, left = errors(name, encoding, errors.toLong()))
    }

    private fun utf8(
        name: String,
        bytes: ByteArray,
    ): Decoded? {
        strictly(bytes, "UTF-8", 0)?.let { return Decoded(it) }
        val source = JoinedHalves(bytes.inputStream())
        val mended = source.readBytes()
        val halves = source.halves
        if (source.pairs > 0 && halves == 0L) strictly(mended, "UTF-8", 0)?.let { return Decoded(it) }
        val text = leniently(mended, "UTF-8", 0)
        val errors = text.count { it == REPLACEMENT }.toLong()
        val right = text.count { it >= '\u0080' } - errors
        val isCut = errors == 1L && text.last() == REPLACEMENT && bytes.size > 1 && bytes[bytes.size - 2] < 0
        if (!isCut && !isNearlyUtf8(right + halves, errors - halves) && errors > halves) return null
        return Decoded(text, left = errors(name, "UTF-8", errors))
    }

    /** East Asian mail in seven bits, which looks like ASCII but for its escapes. */
    private fun byEscapes(bytes: ByteArray): Decoded? {
        if (bytes.any { it < 0 }) return null
        val text = String(bytes, Charsets.ISO_8859_1)
        if (HZ in text) fromHz(bytes)?.let { return Decoded(it, "HZ") }
        if (ESCAPE !in text) return null
        val encoding = escaped(isKorean = KOREAN in text) ?: return null
        return strictly(bytes, encoding, 0)?.takeIf { found ->
            found.any { it >= '\u0080' }
        }?.let { Decoded(it, encoding) }
    }

    /** The encoding of a text with escapes of ISO 2022, null where the system doesn't have it. */
    fun escaped(isKorean: Boolean): String? =
        (if (isKorean) "ISO-2022-KR" else "ISO-2022-JP-2").takeIf(Charset::isSupported)

    private fun fromHz(bytes: ByteArray): String? =
        try {
            val source = HzStream(bytes.inputStream())
            source.readBytes().takeIf { source.isChinese }?.let { strictly(it, OF_HZ, 0) }
        } catch (_: CharacterCodingException) {
            null
        }

    private fun guessed(
        name: String,
        bytes: ByteArray,
    ): Decoded {
        if (0.toByte() in bytes) throw noText(name)
        for (encoding in guessesOf(bytes)) {
            val text = strictly(bytes, encoding, 0) ?: continue
            if (text.any(NO_CONTROL)) throw noText(name)
            return Decoded(text, Charset.forName(encoding).displayName())
        }
        throw ProblemException(R.string.document_no_encoding, name)
    }

    private fun withoutNull(
        name: String,
        found: Decoded,
    ): Decoded {
        val zeros = found.text.count { it == '\u0000' }
        if (zeros == 0) return found
        val filled = found.text.trimEnd('\u0000') // buffers are filled up with them
        val inner = zeros - (found.text.length - filled.length)
        if (filled.isEmpty() || inner.toLong() * FEW > found.text.length) throw noText(name)
        return found.copy(text = found.text.replace("\u0000", ""))
    }

    /** The text, null if it isn't in this encoding. */
    private fun strictly(
        bytes: ByteArray,
        encoding: String,
        from: Int,
    ): String? =
        try {
            val rest = ByteBuffer.wrap(bytes, from, bytes.size - from)
            decoder(encoding, CodingErrorAction.REPORT).decode(rest).toString()
        } catch (_: CharacterCodingException) {
            null
        }

    private fun leniently(
        bytes: ByteArray,
        encoding: String,
        from: Int,
    ) = decoder(encoding, CodingErrorAction.REPLACE).decode(ByteBuffer.wrap(bytes, from, bytes.size - from)).toString()
}
