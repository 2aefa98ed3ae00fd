package io.edgeinfinite.app.documents

/** Characters that nobody sees, and the layout of text made of markup; as Python's `clean.py` does it. */
internal object CleanText {
    private val NO_TEXT = Regex("[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ufffe\uffff]")
    private val SOFT_BREAK = Regex("\u00ad[ \t]*\n[ \t]*")
    private val ROWS = Regex("\n{3,}")

    private const val LONGEST_TITLE = 200
    private const val ZERO_WIDTH_NON_JOINER = 0x200c
    private const val ZERO_WIDTH_JOINER = 0x200d

    /** Soft hyphens, zero-width characters, directions, marks and the like. */
    private val INVISIBLE =
        PointRanges(
            "ad 200b 200e-200f 61c 202a-202e 2060-2064 2066-206f feff fff9-fffb",
        )

    /** Scripts whose letters change their shape, and with it words their meaning, at a joiner. */
    private val JOINED =
        PointRanges(
            "600-6ff 700-74f 750-77f 7c0-7ff 840-85f 860-8ff 900-dff f00-fff 1000-109f 1780-17ff 1800-18af " +
                "1a20-1aaf 1b00-1c4f a800-a82f a840-a87f a880-a8ff a980-a9df aa60-aa7f abc0-abff fb50-fdff " +
                "fe70-fefc 10a00-10a5f 11000-117ff 1e900-1e95f",
        )
    private val EMOJI = PointRanges("203c-3299 fe0f 1f000-1faff")

    /** Invisible copies of ASCII, which only the flags of regions need. */
    private val TAGS = PointRanges("e0000-e007f")
    private val BEFORE_TAGS = PointRanges("1f3f4 e0020-e007f")

    private val LIGATURES =
        listOf("ff", "fi", "fl", "ffi", "ffl", "st", "st").withIndex().associate { (at, text) -> 0xfb00 + at to text } +
            listOf("մն", "մե", "մի", "վն", "մխ").withIndex().associate { (at, text) -> 0xfb13 + at to text }

    /** Text without characters that nobody sees; letters of ligatures apart, Unix's newlines. */
    fun visible(text: String): String {
        val lines = text.replace("\r\n", "\n").replace('\r', '\n')
        if (lines.all { it < '\u0080' }) return lines
        val joined = withoutJoiners(without(lines.replace(SOFT_BREAK, ""), INVISIBLE::contains))
        return opened(withoutTags(joined))
    }

    /** A title in one line of a length that can be shown. */
    fun oneLine(text: String): String =
        visible(text).replace(NO_TEXT, " ").split(Regex("\\s+")).joinToString(" ").trim().take(LONGEST_TITLE)

    /** Joiners stay behind emoji and the scripts that need them. */
    private fun withoutJoiners(text: String): String {
        var before = 0
        return without(text) { point ->
            val needless =
                when (point) {
                    ZERO_WIDTH_NON_JOINER -> before !in JOINED
                    ZERO_WIDTH_JOINER -> before !in JOINED && before !in EMOJI
                    else -> false
                }
            before = point
            needless
        }
    }

    private fun withoutTags(text: String): String {
        var before = 0
        var inRun = false
        return without(text) { point ->
            inRun = point in TAGS && (inRun || before !in BEFORE_TAGS)
            before = point
            inRun
        }
    }

    private fun without(
        text: String,
        isDropped: (Int) -> Boolean,
    ): String {
        val kept = StringBuilder(text.length)
        for (point in text.codePoints()) if (!isDropped(point)) kept.appendCodePoint(point)
        return kept.toString()
    }

    private fun opened(text: String): String {
        if (text.none { it.code in LIGATURES }) return text
        return buildString(text.length) { for (one in text) LIGATURES[one.code]?.let(::append) ?: append(one) }
    }

    /** Text of markup or pages: visible, without trailing white space and rows of blank lines. */
    fun tidied(text: String): String {
        val plain = visible(text).replace("\u000c", "\n\n").replace("\u2029", "\n\n").replace('\u2028', '\n')
        val words = plain.replace(NO_TEXT, "").replace('\u00a0', ' ').replace('\u202f', ' ')
        val lines = words.replace('\u2010', '-').replace('\u2011', '-').split('\n')
        return lines.joinToString("\n") { it.trimEnd() }.replace(ROWS, "\n\n").trim('\n')
    }
}

/** A set of code points, written as ranges in hexadecimal. */
private class PointRanges(
    written: String,
) {
    private val ranges =
        written.split(' ').map { range ->
            val ends = range.split('-').map { it.toInt(16) }
            ends.first()..ends.last()
        }

    operator fun contains(point: Int): Boolean = point >= 0x80 && ranges.any { point in it }
}
