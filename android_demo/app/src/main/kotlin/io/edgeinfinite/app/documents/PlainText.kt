package io.edgeinfinite.app.documents

/** Plain text and Markdown, in whatever encoding. */
internal object PlainText {
    private const val NEAR = 200

    /** CP/M's and DOS's, at the end of old texts. */
    private const val END_OF_FILE = "\u001a"

    /** Newlines become those of Unix; all that is seen stays. */
    fun of(
        name: String,
        bytes: ByteArray,
    ): Extracted {
        val (text, guess, left) = TextDecoder.decoded(name, bytes, statedIn(bytes))
        return Extracted(CleanText.visible(text.removeSuffix(END_OF_FILE)), guess, left)
    }

    /** What a text of markup says of its encoding, null if nothing. */
    fun statedIn(bytes: ByteArray): String? {
        val isMarkup = String(bytes, 0, minOf(bytes.size, NEAR), Charsets.ISO_8859_1).trimStart().startsWith('<')
        return if (isMarkup) EncodingNames.stated(bytes) else null
    }
}
