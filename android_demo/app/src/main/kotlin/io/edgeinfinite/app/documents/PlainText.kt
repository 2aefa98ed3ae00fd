package io.edgeinfinite.app.documents

import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import org.mozilla.universalchardet.UniversalDetector
import java.io.File
import java.io.InputStreamReader
import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.Charset
import java.nio.charset.CharsetDecoder
import java.nio.charset.CodingErrorAction

/** Plain text and Markdown, in whatever encoding. */
internal object PlainText {
    private const val LOOKED_AT = 1 shl 20
    private const val BLOCK = 1 shl 15

    /** What no text in an encoding that the file tells holds, and none in a guessed one. */
    private val NO_NULL = { sign: Char -> sign == '\u0000' }
    private val NO_CONTROL = { sign: Char -> sign < ' ' && sign !in "\t\n\r\u000c" }

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

    /** Newlines become those of Unix; all else stays. */
    fun of(
        name: String,
        bytes: ByteArray,
    ): Extracted {
        val (text, guess) = decoded(name, bytes)
        return Extracted(text.replace("\r\n", "\n").replace('\r', '\n'), guess)
    }

    /**
     * Copies a text of any length as UTF-8 with Unix's newlines, without holding it.
     *
     * @return the encoding that it was taken for, null where the file tells.
     */
    fun copy(
        name: String,
        from: File,
        to: File,
    ): String? {
        val start = from.inputStream().use { it.readUpTo(LOOKED_AT) }
        val (mark, encoding) = markOf(start)
        if (copyStrictly(name, from, to, encoding, mark.length / 2, NO_NULL)) return null
        if (mark.isNotEmpty()) throw ProblemException(R.string.document_false_mark, name, encoding)
        if (0.toByte() in start) throw noText(name)
        for (guess in guessesOf(start)) {
            if (copyStrictly(name, from, to, guess, 0, NO_CONTROL)) return Charset.forName(guess).displayName()
        }
        throw ProblemException(R.string.document_no_encoding, name)
    }

    /** @return false if it isn't in this encoding. */
    private fun copyStrictly(
        name: String,
        from: File,
        to: File,
        encoding: String,
        mark: Int,
        isNoText: (Char) -> Boolean,
    ): Boolean {
        val block = CharArray(BLOCK)
        var isAfterReturn = false
        try {
            val source = from.inputStream().apply { skip(mark.toLong()) }
            InputStreamReader(source, strict(encoding)).use { reader ->
                to.bufferedWriter().use { writer ->
                    while (true) {
                        val count = reader.read(block)
                        if (count < 0) break
                        for (at in 0 until count) {
                            val sign = block[at]
                            if (isNoText(sign)) throw noText(name)
                            if (sign == '\r' || (sign == '\n' && !isAfterReturn)) writer.write('\n'.code)
                            if (sign != '\r' && sign != '\n') writer.write(sign.code)
                            isAfterReturn = sign == '\r'
                        }
                    }
                }
            }
        } catch (_: CharacterCodingException) {
            return false
        }
        return true
    }

    private fun markOf(start: ByteArray): Pair<String, String> {
        val first = start.take(4).joinToString("") { "%02X".format(it) }
        return MARKS.firstOrNull { first.startsWith(it.first) } ?: ("" to "UTF-8")
    }

    private fun guessesOf(start: ByteArray): List<String> {
        val detector = UniversalDetector()
        detector.handleData(start, 0, minOf(start.size, LOOKED_AT))
        detector.dataEnd()
        val found = detector.detectedCharset?.takeIf { it !in NOT_GUESSED && Charset.isSupported(it) }
        return listOfNotNull(found, COMMONEST)
    }

    private fun decoded(
        name: String,
        bytes: ByteArray,
    ): Pair<String, String?> {
        val (mark, encoding) = markOf(bytes)
        val text = strictly(bytes, encoding, mark.length / 2)
        if (text == null && mark.isNotEmpty()) {
            throw ProblemException(R.string.document_false_mark, name, encoding)
        }
        if ('\u0000' in (text ?: String(bytes, 0, minOf(bytes.size, LOOKED_AT), Charsets.ISO_8859_1))) {
            throw noText(name)
        }
        return if (text == null) guessed(name, bytes) else text to null
    }

    private fun guessed(
        name: String,
        bytes: ByteArray,
    ): Pair<String, String> {
        for (encoding in guessesOf(bytes)) {
            val text = strictly(bytes, encoding, 0) ?: continue
            if (text.any(NO_CONTROL)) throw noText(name)
            return text to Charset.forName(encoding).displayName()
        }
        throw ProblemException(R.string.document_no_encoding, name)
    }

    private fun noText(name: String) = ProblemException(R.string.document_unknown, name)

    /** The text, null if it isn't in this encoding. */
    private fun strictly(
        bytes: ByteArray,
        encoding: String,
        from: Int,
    ): String? =
        try {
            strict(encoding).decode(ByteBuffer.wrap(bytes, from, bytes.size - from)).toString()
        } catch (_: CharacterCodingException) {
            null
        }

    private fun strict(encoding: String): CharsetDecoder =
        Charset
            .forName(encoding)
            .newDecoder()
            .onMalformedInput(CodingErrorAction.REPORT)
            .onUnmappableCharacter(CodingErrorAction.REPORT)
}
