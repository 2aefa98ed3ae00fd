package io.edgeinfinite.app.documents

/** Characters that nobody sees, and the layout of text made of markup; as Python's `clean.py` does it. */
internal object CleanText {
    private val NO_TEXT = Regex("[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ufffe\uffff]")
    private val SOFT_BREAK = Regex("\u00ad[ \t]*\n[ \t]*")
    private val INVISIBLE =
        Regex("[\u00ad\u200b\u200e\u200f\u061c\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]")

    /** Scripts whose letters change their shape, and with it words their meaning, at a joiner. */
    private const val JOINED =
        "\u0600-\u06ff\u0700-\u077f\u07c0-\u07ff\u0840-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u18af" +
            "\u1a20-\u1aaf\u1b00-\u1c4f\ua800-\ua8ff\ua980-\ua9df\uaa60-\uaa7f\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc"

    /** Emoji and scripts beyond the first plane. */
    private const val EMOJI = "\u203c-\u3299\ufe0f\\x{1f000}-\\x{1faff}\\x{10a00}-\\x{117ff}"
    private val JOINER = Regex("(?<![$JOINED])\u200c|(?<![$JOINED$EMOJI])\u200d")
    private val LIGATURE = Regex("[\ufb00-\ufb06]")
    private val LIGATURES = listOf("ff", "fi", "fl", "ffi", "ffl", "st", "st")
    private val ROWS = Regex("\n{3,}")

    /** Text without characters that nobody sees; letters of ligatures apart, Unix's newlines. */
    fun visible(text: String): String {
        val lines = text.replace("\r\n", "\n").replace('\r', '\n')
        if (lines.all { it < '\u0080' }) return lines
        val seen = lines.replace(SOFT_BREAK, "").replace(INVISIBLE, "").replace(JOINER, "")
        return seen.replace(LIGATURE) { LIGATURES[it.value[0] - '\ufb00'] }
    }

    /** Text of markup or pages: visible, without trailing white space and rows of blank lines. */
    fun tidied(text: String): String {
        val plain = visible(text).replace("\u000c", "\n\n").replace("\u2029", "\n\n").replace('\u2028', '\n')
        val words = plain.replace(NO_TEXT, "").replace('\u00a0', ' ').replace('\u202f', ' ')
        val lines = words.replace('\u2010', '-').replace('\u2011', '-').split('\n')
        return lines.joinToString("\n") { it.trimEnd() }.replace(ROWS, "\n\n").trim('\n')
    }
}
