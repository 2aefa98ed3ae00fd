package io.edgeinfinite.app.documents

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.TextPiece
import io.edgeinfinite.core.TextSource
import java.io.File
import java.io.IOException
import java.io.RandomAccessFile

/**
 * A text in a file of the app, read piece by piece. Offsets are bytes.
 *
 * @param file in UTF-8, with Unix's newlines.
 */
class LongText(
    private val file: File,
) : TextSource {
    override val length: Long get() = file.length()

    /** Pieces end with a paragraph, else with a line or a word, where there is one. */
    override fun pieceAt(offset: Long): TextPiece? {
        val bytes =
            try {
                RandomAccessFile(file, "r").use { source ->
                    source.seek(offset)
                    ByteArray(minOf(PIECE, maxOf(0, source.length() - offset)).toInt()).also(source::readFully)
                }
            } catch (error: IOException) {
                throw EdgeInfiniteException(
                    ErrorCode.UNREADABLE_SOURCE,
                    "the rest of the text is gone: ${error.message}",
                    error,
                )
            }
        if (bytes.isEmpty()) return null
        val size = if (offset + bytes.size >= length) bytes.size else endIn(bytes)
        return TextPiece(String(bytes, 0, size), offset + size)
    }

    private fun endIn(bytes: ByteArray): Int {
        var line = 0
        var word = 0
        for (at in bytes.lastIndex downTo bytes.size / 2) {
            when (bytes[at]) {
                NEWLINE -> {
                    if (bytes[at - 1] == NEWLINE) return at + 1
                    if (line == 0) line = at + 1
                }
                SPACE -> if (word == 0) word = at + 1
            }
        }
        if (line > 0 || word > 0) return if (line > 0) line else word
        // Before the first byte of a character that may be cut.
        var end = bytes.lastIndex
        while (end > 0 && bytes[end].toInt() and CONTINUED_MASK == CONTINUED) end -= 1
        return end
    }

    internal companion object {
        /** Bytes of a piece, at most. */
        const val PIECE = 65_536L
        private const val NEWLINE = '\n'.code.toByte()
        private const val SPACE = ' '.code.toByte()
        private const val CONTINUED_MASK = 0xC0
        private const val CONTINUED = 0x80
    }
}
