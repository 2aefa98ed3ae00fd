package io.edgeinfinite.app.documents

import java.io.Writer

/**
 * Writes what [CleanText.visible] leaves of a text of any length, without NULs and the sign that ends old files.
 *
 * @param to gets the text.
 */
internal class VisibleWriter(
    private val to: Writer,
) : AutoCloseable {
    private val held = StringBuilder()
    private var hasEnd = false

    /** Takes the next sign; newlines are Unix's. */
    fun write(sign: Char) {
        if (sign == NULL) return
        if (hasEnd) held.append(END_OF_FILE)
        hasEnd = sign == END_OF_FILE
        if (hasEnd) return
        held.append(sign)
        val isLineEnd = sign == '\n' && held.length > BLOCK && held.getOrNull(held.length - 2) !in OPEN
        if (isLineEnd || (sign == ' ' && held.length > LONGEST_LINE)) release()
    }

    private fun release() {
        to.write(CleanText.visible("$held"))
        held.setLength(0)
    }

    override fun close() {
        release()
        to.close()
    }

    private companion object {
        const val NULL = '\u0000'
        const val END_OF_FILE = '\u001a'
        const val BLOCK = 1 shl 15
        const val LONGEST_LINE = 1 shl 20

        /** Behind a soft hyphen a line goes on. */
        val OPEN = setOf('\u00ad', ' ', '\t')
    }
}
