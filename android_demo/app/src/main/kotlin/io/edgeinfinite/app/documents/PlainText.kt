package io.edgeinfinite.app.documents

import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import java.io.File
import java.io.InputStreamReader
import java.nio.charset.CharacterCodingException
import java.nio.charset.Charset
import java.nio.charset.CodingErrorAction

/** Plain text and Markdown, in whatever encoding. */
internal object PlainText {
    private const val BLOCK = 1 shl 15
    private const val NEAR = 200

    /** CP/M's and DOS's, at the end of old texts. */
    private const val END_OF_FILE = "\u001a"

    /** What no text in an encoding that the file tells holds. */
    private val NO_NULL = { sign: Char -> sign == '\u0000' }

    /** Newlines become those of Unix; all that is seen stays. */
    fun of(
        name: String,
        bytes: ByteArray,
    ): Extracted {
        val isMarkup = String(bytes, 0, minOf(bytes.size, NEAR), Charsets.ISO_8859_1).trimStart().startsWith('<')
        val stated = if (isMarkup) EncodingNames.stated(bytes) else null
        val (text, guess, left) = TextDecoder.decoded(name, bytes, stated)
        return Extracted(CleanText.visible(text.removeSuffix(END_OF_FILE)), guess, left)
    }

    /**
     * Copies a text of any length as UTF-8 with Unix's newlines, without holding it.
     *
     * @return the encoding that it was taken for, null where the file tells; and what isn't as the file has it.
     */
    fun copy(
        name: String,
        from: File,
        to: File,
    ): Pair<String?, Problem?> {
        val start = from.inputStream().use { it.readUpTo(TextDecoder.LOOKED_AT) }
        val (mark, encoding) = TextDecoder.markOf(start)
        if (copyStrictly(name, from, to, encoding, mark.length / 2, NO_NULL)) return null to null
        copyNearly(name, from, to, encoding, mark.length / 2)?.let { return null to it }
        if (mark.isNotEmpty()) throw ProblemException(R.string.document_false_mark, name, encoding)
        if (0.toByte() in start) throw TextDecoder.noText(name)
        for (guess in TextDecoder.guessesOf(start)) {
            if (copyStrictly(name, from, to, guess, 0, TextDecoder.NO_CONTROL)) {
                return Charset.forName(guess).displayName() to null
            }
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
    ): Boolean =
        try {
            copySigns(from, to, encoding, mark, CodingErrorAction.REPORT) {
                if (isNoText(it)) throw TextDecoder.noText(name)
            }
            true
        } catch (_: CharacterCodingException) {
            false
        }

    /** @return what is wrong with a text that has few errors; null if it has many. */
    private fun copyNearly(
        name: String,
        from: File,
        to: File,
        encoding: String,
        mark: Int,
    ): Problem? {
        var all = 0L
        var right = 0L
        var errors = 0L
        copySigns(from, to, encoding, mark, CodingErrorAction.REPLACE) {
            all += 1
            if (it == TextDecoder.REPLACEMENT) {
                errors += 1
            } else if (it >= '\u0080') {
                right += 1
            }
        }
        val isNearly = if (mark > 0) TextDecoder.hasFew(errors, all) else TextDecoder.isNearlyUtf8(right, errors)
        return if (isNearly) TextDecoder.errors(name, encoding, errors) else null
    }

    private fun copySigns(
        from: File,
        to: File,
        encoding: String,
        mark: Int,
        action: CodingErrorAction,
        look: (Char) -> Unit,
    ) {
        val block = CharArray(BLOCK)
        var isAfterReturn = false
        val source = from.inputStream().apply { skip(mark.toLong()) }
        InputStreamReader(source, TextDecoder.decoder(encoding, action)).use { reader ->
            to.bufferedWriter().use { writer ->
                while (true) {
                    val count = reader.read(block)
                    if (count < 0) break
                    for (at in 0 until count) {
                        val sign = block[at]
                        look(sign)
                        if (sign == '\r' || (sign == '\n' && !isAfterReturn)) writer.write('\n'.code)
                        if (sign != '\r' && sign != '\n') writer.write(sign.code)
                        isAfterReturn = sign == '\r'
                    }
                }
            }
        }
    }
}
