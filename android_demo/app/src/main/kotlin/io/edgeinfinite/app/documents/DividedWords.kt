package io.edgeinfinite.app.documents

/** Words that a PDF's lines divide, in one piece again; as Python's `pdf_text.rejoined`. */
internal object DividedWords {
    private val HYPHEN = Regex("(?<=\\p{L})-\n(?=\\p{L})")
    private val DIVIDED = Regex("\\p{L}{1,60}-\n\\p{L}{1,60}")
    private val WORD = Regex("\\p{L}+(?:-\\p{L}+)*")
    private val BEFORE = Regex("\\p{L}{1,60}$")
    private val AFTER = Regex("(\\p{L}{1,60})([^\\s\\p{L}\\p{N}_]{0,9})( ?)")
    private const val LONGEST = 60

    /**
     * A hyphen stays where the text has the word with it elsewhere, or both its halves as words of their own, and
     * nowhere the whole.
     */
    fun rejoined(text: String): String {
        val places = HYPHEN.findAll(text).map { it.range.first }.toList()
        if (places.isEmpty()) return text
        val known = WORD.findAll(text.replace(DIVIDED, "")).mapTo(HashSet()) { it.value.lowercase() }
        val out = StringBuilder(text.length)
        var end = 0
        for (at in places) {
            val before = BEFORE.find(text.substring(maxOf(0, at - LONGEST), at))?.value ?: continue
            val found = AFTER.matchAt(text, at + 2) ?: continue
            val (after, signs, space) = found.destructured
            if (at < end || !after[0].isLowerCase()) continue
            val isHyphened = "$before-$after".lowercase() in known
            val isCompound = isHyphened || (before.lowercase() in known && after.lowercase() in known)
            out.append(text, end, at)
            if (isCompound && (before + after).lowercase() !in known) out.append('-')
            out.append(after).append(signs)
            if (space.isNotEmpty()) out.append('\n')
            end = found.range.last + 1
        }
        return out.append(text, end, text.length).toString()
    }
}
