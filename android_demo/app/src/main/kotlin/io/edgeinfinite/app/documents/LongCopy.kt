package io.edgeinfinite.app.documents

import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import java.io.File
import java.io.InputStream
import java.io.InputStreamReader
import java.nio.charset.CharacterCodingException
import java.nio.charset.Charset
import java.nio.charset.CodingErrorAction

/**
 * Copies a text of any length as UTF-8 with Unix's newlines, without holding it. Encodings are tried in the order of
 * [TextDecoder.decoded], each over the whole file.
 *
 * @param name the document's, for errors.
 * @param from its file.
 * @param to gets the text.
 */
internal class LongCopy(
    private val name: String,
    private val from: File,
    private val to: File,
) {
    /** What was read of a file in one encoding. */
    private class Signs(
        var all: Long = 0,
        var beyondAscii: Long = 0,
        var errors: Long = 0,
        var endsInError: Boolean = false,
        var controls: Long = 0,
        var nulls: Long = 0,
    ) {
        /** NULs in the middle; buffers are filled up with them. */
        var innerNulls = 0L

        fun meet(sign: Char) {
            all += 1
            endsInError = sign == TextDecoder.REPLACEMENT
            if (endsInError) errors += 1
            if (sign >= '\u0080' && !endsInError) beyondAscii += 1
            if (TextDecoder.NO_CONTROL(sign)) controls += 1
            if (sign == '\u0000') nulls += 1 else innerNulls = nulls
        }
    }

    private val start = from.inputStream().use { it.readUpTo(TextDecoder.LOOKED_AT) }

    /**
     * @return the encoding that it was taken for, null where the file tells; and what isn't as the file has it.
     * @throws ProblemException it is no text, or in no encoding that is known.
     */
    fun run(): Pair<String?, Problem?> {
        val (mark, encoding) = TextDecoder.markOf(start)
        if (mark.isNotEmpty()) return marked(encoding, mark.length / 2L)
        return unmarked() ?: stated() ?: byEscapes() ?: utf8() ?: guessed()
    }

    private fun marked(
        encoding: String,
        mark: Long,
    ): Pair<String?, Problem?> {
        if (strictly(encoding) { it.behind(mark) } != null) return null to null
        val signs = signs(encoding, CodingErrorAction.REPLACE) { it.behind(mark) }
        if (!TextDecoder.hasFew(signs.errors, signs.all)) {
            throw ProblemException(R.string.document_false_mark, name, encoding)
        }
        return null to TextDecoder.errors(name, encoding, signs.errors)
    }

    private fun InputStream.behind(count: Long) = apply { skip(count) }

    private fun unmarked(): Pair<String?, Problem?>? {
        val fitting =
            TextDecoder.unmarkedIn(start, from.length()).firstOrNull { encoding ->
                strictly(encoding, isGuess = true)?.controls == 0L
            }
        return fitting?.let { it to null }
    }

    private fun stated(): Pair<String?, Problem?>? {
        val encoding = PlainText.statedIn(start)?.let(EncodingNames::known) ?: return null
        if (encoding.startsWith("UTF-")) return null
        if (strictly(encoding) != null) return null to null
        if (strictly("UTF-8") != null) return null to null
        val signs = signs(encoding, CodingErrorAction.REPLACE)
        if (signs.errors > 1 && signs.errors * TextDecoder.SHARE_OF_ERRORS >= signs.all) return null
        return null to TextDecoder.errors(name, encoding, signs.errors)
    }

    private fun byEscapes(): Pair<String?, Problem?>? {
        val escapes = escapes()
        if (TextDecoder.HZ in escapes) {
            var source: HzStream? = null
            val signs = strictly(TextDecoder.OF_HZ) { HzStream(it).also { made -> source = made } }
            if (signs != null && source?.isChinese == true) return "HZ" to null
        }
        if (TextDecoder.ESCAPE !in escapes) return null
        val encoding = TextDecoder.escaped(TextDecoder.KOREAN in escapes) ?: return null
        val signs = strictly(encoding) ?: return null
        return if (signs.beyondAscii > 0) encoding to null else null
    }

    /** Which beginnings of signs of two bytes there are. */
    private fun escapes(): Set<String> {
        val all = setOf(TextDecoder.HZ, TextDecoder.ESCAPE, TextDecoder.KOREAN)
        val found = HashSet<String>()
        var before = ""
        from.inputStream().use { source ->
            while (true) {
                val block = source.readUpTo(BLOCK)
                if (block.isEmpty()) break
                val text = before + String(block, Charsets.ISO_8859_1)
                found += all.filter { it in text }
                before = text.takeLast(TextDecoder.KOREAN.length - 1)
            }
        }
        return found
    }

    private fun utf8(): Pair<String?, Problem?>? {
        if (strictly("UTF-8") != null) return null to null
        var source: JoinedHalves? = null
        val signs = signs("UTF-8", CodingErrorAction.REPLACE) { JoinedHalves(it).also { made -> source = made } }
        val halves = source?.halves ?: 0
        if (signs.errors == 0L) return null to null
        val isCut = signs.errors == 1L && signs.endsInError && isWithinCharacter()
        val isNearly = TextDecoder.isNearlyUtf8(signs.beyondAscii + halves, signs.errors - halves)
        if (!isCut && !isNearly && signs.errors > halves) return null
        return null to TextDecoder.errors(name, "UTF-8", signs.errors)
    }

    /** Whether the last byte but one is part of a character beyond ASCII. */
    private fun isWithinCharacter(): Boolean =
        from.length() > 1 && from.inputStream().use { it.behind(from.length() - 2).read() } >= FIRST_BEYOND_ASCII

    private fun guessed(): Pair<String?, Problem?> {
        if (0.toByte() in start) throw TextDecoder.noText(name)
        for (guess in TextDecoder.guessesOf(start)) {
            val signs = strictly(guess, isGuess = true) ?: continue
            if (signs.controls > 0) throw TextDecoder.noText(name)
            return Charset.forName(guess).displayName() to null
        }
        throw ProblemException(R.string.document_no_encoding, name)
    }

    /** Copies it if it is in this encoding; null if it isn't. */
    private fun strictly(
        encoding: String,
        isGuess: Boolean = false,
        through: (InputStream) -> InputStream = { it },
    ): Signs? =
        try {
            signs(encoding, CodingErrorAction.REPORT, isGuess, through)
        } catch (_: CharacterCodingException) {
            null
        }

    private fun signs(
        encoding: String,
        action: CodingErrorAction,
        isGuess: Boolean = false,
        through: (InputStream) -> InputStream = { it },
    ): Signs {
        val signs = Signs()
        val block = CharArray(BLOCK)
        var isAfterReturn = false
        val source = through(from.inputStream().buffered())
        InputStreamReader(source, TextDecoder.decoder(encoding, action)).use { reader ->
            VisibleWriter(to.bufferedWriter()).use { writer ->
                while (true) {
                    val count = reader.read(block)
                    if (count < 0) break
                    for (at in 0 until count) {
                        val sign = block[at]
                        signs.meet(sign)
                        if (sign == '\r' || (sign == '\n' && !isAfterReturn)) writer.write('\n')
                        if (sign != '\r' && sign != '\n') writer.write(sign)
                        isAfterReturn = sign == '\r'
                    }
                    if (isGuess && signs.controls > 0) return signs
                }
            }
        }
        val isFilled = signs.nulls > 0 && signs.nulls == signs.all
        if (isFilled || signs.innerNulls * TextDecoder.FEW > signs.all) throw TextDecoder.noText(name)
        return signs
    }

    private companion object {
        const val BLOCK = 1 shl 15
        const val FIRST_BEYOND_ASCII = 0x80
    }
}
