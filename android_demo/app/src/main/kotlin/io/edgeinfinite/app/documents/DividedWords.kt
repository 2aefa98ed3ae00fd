package io.edgeinfinite.app.documents

/** Words that a PDF's lines divide, in one piece again; as Python's `pdf_text.rejoined`. */
internal object DividedWords {
    private val HYPHEN = Regex("(?<=\\p{L})-\n(?=\\p{L})")
    private val WORD = Regex("\\p{L}+(?:-\\p{L}+)*")
    private val BEFORE = Regex("\\p{L}{1,60}$")
    private val AFTER = Regex("(\\p{L}{1,60})([^\\s\\p{L}\\p{N}_]{0,9})( ?)")
    private const val LONGEST = 60

    /**
     * A hyphen stays where the text has the word with it elsewhere, or both its halves as words of their own, and
     * nowhere the whole.
     */
    fun rejoined(text: String): String {
        val divided = HYPHEN.findAll(text).mapNotNull { dividedAt(text, it.range.first) }.toList()
        if (divided.isEmpty()) return text
        val known = known(text, divided)
        val out = StringBuilder(text.length)
        var end = 0
        for (one in divided) {
            if (one.at < end || !one.after[0].isLowerCase()) continue
            val isHyphened = "${one.before}-${one.after}".lowercase() in known
            val isCompound = isHyphened || (one.before.lowercase() in known && one.after.lowercase() in known)
            out.append(text, end, one.at)
            if (isCompound && (one.before + one.after).lowercase() !in known) out.append('-')
            out.append(one.after).append(one.signs)
            if (one.isSpaced) out.append('\n')
            end = one.end
        }
        return out.append(text, end, text.length).toString()
    }

    private class Divided(
        val at: Int,
        val before: String,
        val after: String,
        val signs: String,
        val isSpaced: Boolean,
        val end: Int,
    )

    private fun dividedAt(
        text: String,
        at: Int,
    ): Divided? {
        val before = BEFORE.find(text.substring(maxOf(0, at - LONGEST), at))?.value ?: return null
        val found = AFTER.matchAt(text, at + 2) ?: return null
        val (after, signs, space) = found.destructured
        return Divided(at, before, after, signs, space.isNotEmpty(), found.range.last + 1)
    }

    /** The words that stand whole somewhere; no half counts as one. */
    private fun known(
        text: String,
        divided: List<Divided>,
    ): Set<String> {
        val known = HashSet<String>()
        var end = 0
        for (one in divided) {
            val start = maxOf(end, one.at - one.before.length)
            WORD.findAll(text.substring(end, start)).mapTo(known) { it.value.lowercase() }
            end = one.at + 2 + one.after.length
        }
        WORD.findAll(text.substring(end)).mapTo(known) { it.value.lowercase() }
        return known
    }
}
