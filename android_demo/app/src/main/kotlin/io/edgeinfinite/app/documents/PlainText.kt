package io.edgeinfinite.app.documents

import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import org.mozilla.universalchardet.UniversalDetector
import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.Charset
import java.nio.charset.CodingErrorAction

/** Plain text and Markdown, in whatever encoding. */
internal object PlainText {
    private const val LOOKED_AT = 1 shl 20

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

    private fun decoded(
        name: String,
        bytes: ByteArray,
    ): Pair<String, String?> {
        val start = bytes.take(4).joinToString("") { "%02X".format(it) }
        val (mark, encoding) = MARKS.firstOrNull { start.startsWith(it.first) } ?: ("" to "UTF-8")
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
        val detector = UniversalDetector()
        detector.handleData(bytes, 0, minOf(bytes.size, LOOKED_AT))
        detector.dataEnd()
        val found = detector.detectedCharset?.takeIf { it !in NOT_GUESSED && Charset.isSupported(it) }
        for (encoding in listOfNotNull(found, COMMONEST)) {
            val text = strictly(bytes, encoding, 0) ?: continue
            if (text.any { it < ' ' && it !in "\t\n\r\u000c" }) throw noText(name)
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
    ): String? {
        val decoder =
            Charset
                .forName(encoding)
                .newDecoder()
                .onMalformedInput(CodingErrorAction.REPORT)
                .onUnmappableCharacter(CodingErrorAction.REPORT)
        return try {
            decoder.decode(ByteBuffer.wrap(bytes, from, bytes.size - from)).toString()
        } catch (_: CharacterCodingException) {
            null
        }
    }
}
