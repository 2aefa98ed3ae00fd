package io.edgeinfinite.app.documents

/**
 * Lines of Markdown while they are written: breaks, indentation of lists and quotations; as Python's `lines.py`.
 *
 * @param check is given the number of characters that there will be, before they are added.
 */
internal class MarkdownLines(
    private val check: (Long) -> Unit,
) {
    private val out = StringBuilder()
    private val prefixes = ArrayDeque<String>()
    private var prefix = ""
    private var outermost = ""
    private var breaks = 0
    private var isSpaced = false
    private var mark: String? = null

    /** Whether a mark waits for something to come after it. */
    val hasMark: Boolean get() = mark != null

    fun text(): String = out.toString()

    /** Begins a line, or a paragraph for 2, before what is written next. */
    fun startLine(
        lines: Int,
        exactly: Boolean = false,
    ) {
        // What stands in a list's item begins beside its mark.
        if (mark == null) breaks = if (exactly) lines else maxOf(breaks, lines)
        isSpaced = false
    }

    /** Lines from here on have a prefix; the first has [first] in its place, if there is one. */
    fun push(
        more: String,
        first: String,
    ) {
        if (first.isNotEmpty()) mark = (mark ?: prefix) + first
        prefixes += prefix
        if (prefix.length + more.length <= WIDEST) prefix += more
    }

    /** Ends the last [push]; a mark that nothing came after is dropped. */
    fun pop() {
        prefixes.removeLastOrNull()?.let { prefix = it }
        if (prefix.length < outermost.length) outermost = prefix
        mark = null
    }

    /** Writes text; spaces at its ends are kept within a line only. */
    fun write(text: String) {
        var words = text.trim(' ')
        if (words.isEmpty()) {
            isSpaced = isSpaced || text.isNotEmpty()
            return
        }
        if (breaks > 0 || mark != null || out.isEmpty()) {
            if (out.isNotEmpty()) words = words.trimStart('\n')
            beginLine()
        } else if (isSpaced || text.first() == ' ') {
            out.append(' ')
        }
        val indented = if (prefix.isEmpty()) words else words.replace("\n", "\n$prefix")
        check(out.length.toLong() + indented.length)
        out.append(indented)
        isSpaced = text.last() == ' '
    }

    private fun beginLine() {
        if (out.isNotEmpty()) {
            if (breaks > 1) out.append('\n').append(outermost.trimEnd(' '))
            out.append('\n')
        }
        out.append(mark ?: prefix)
        mark = null
        outermost = prefix
        breaks = 0
        isSpaced = false
    }

    private companion object {
        /** Of an indentation; deeper lists go no further to the right. */
        const val WIDEST = 40
    }
}
