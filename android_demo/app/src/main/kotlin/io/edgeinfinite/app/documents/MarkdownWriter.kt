package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element
import org.jsoup.nodes.Node
import org.jsoup.nodes.TextNode
import org.jsoup.select.NodeFilter
import org.jsoup.select.NodeFilter.FilterResult
import java.util.IdentityHashMap

/**
 * Writes a page's elements in one pass; as Python's `writer.py`.
 *
 * @param layout tables that only lay the page out.
 * @param blocksInside inline elements that hold blocks.
 * @param aroundMath elements right around a formula.
 * @param classes what its style sheets' classes do.
 * @param check see [MarkdownLines].
 */
internal class MarkdownWriter(
    private val layout: Set<Element>,
    private val blocksInside: Set<Element>,
    private val aroundMath: Set<Element>,
    private val classes: Map<String, Effect>,
    check: (Long) -> Unit,
) : NodeFilter {
    private val lines = MarkdownLines(check)

    /** What elements say that are written at their end. */
    private val captures = ArrayDeque<StringBuilder>()
    private val ends = IdentityHashMap<Element, () -> Unit>()

    /** The numbers of each list around, null of those without. */
    private val lists = ArrayDeque<ListNumbers?>()
    private val tables = ArrayDeque<MarkdownTable>()
    private var verbatim = 0

    fun text(): String = lines.text()

    override fun head(
        node: Node,
        depth: Int,
    ): FilterResult {
        if (node is TextNode) put(if (verbatim > 0) node.wholeText else node.wholeText.replace(SPACE, " "))
        if (node !is Element) return FilterResult.CONTINUE
        val tag = node.normalName()
        when {
            tag in Tags.UNREAD -> {
                if (Tags.isTex(node)) put(" " + MarkdownInline.words(node.data()) + " ")
                return FilterResult.SKIP_ENTIRELY
            }
            node.attr("aria-hidden") == "true" && node.parent() in aroundMath -> return FilterResult.SKIP_ENTIRELY
            MarkdownInline.isPageMark(node) || Tags.isOtherChoice(node) -> {
                if (tag in Tags.BLOCKS) startLine(2)
                return FilterResult.SKIP_ENTIRELY
            }
            tag == "math" || tag.endsWith(":math") -> {
                val formula = Formulas.of(node)
                put(if (node.attr("display") == "block") " $formula " else formula)
                return FilterResult.SKIP_ENTIRELY
            }
            tag in Tags.BLOCKS -> blockStarts(tag, node)
            tag == "input" -> put(MarkdownInline.field(node))
            tag in Tags.APART -> put(" ")
            tag == "img" -> put(MarkdownInline.picture(node))
            tag == "br" -> put(if (verbatim > 0 || captures.isEmpty()) "\n" else " ")
            else -> return inlineStarts(tag, node)
        }
        return FilterResult.CONTINUE
    }

    override fun tail(
        node: Node,
        depth: Int,
    ): FilterResult {
        if (node is Element) ended(node.normalName(), node)
        return FilterResult.CONTINUE
    }

    private fun put(text: String) {
        captures.lastOrNull()?.append(text) ?: lines.write(text)
    }

    private fun startLine(count: Int) {
        if (captures.isEmpty()) {
            lines.startLine(count)
        } else if (verbatim == 0) {
            captures.last().append(' ')
        } else if (captures.last().lastOrNull() ?: '\n' != '\n') {
            captures.last().append('\n')
        }
    }

    /** Holds what an element says back until its end, for [then]. */
    private fun capture(
        element: Element,
        then: (String) -> Unit,
    ) {
        if (captures.size >= MOST_CAPTURES) return
        captures += StringBuilder()
        ends[element] = { then(captures.removeLast().toString()) }
    }

    private fun inlineStarts(
        tag: String,
        element: Element,
    ): FilterResult {
        val styled = Styles.of(element, classes)
        // A page may show blocks later, and draws its formulas.
        val holdsMore = element in blocksInside || element in aroundMath
        if (styled == Effect.HIDDEN && !holdsMore) return FilterResult.SKIP_ENTIRELY
        if (styled == Effect.BLOCK || styled == Effect.CELL) {
            val separate = { if (styled == Effect.BLOCK) startLine(2) else put(" ") }
            separate()
            ends[element] = separate
            return FilterResult.CONTINUE
        }
        val isMark = tag == "a" && MarkdownInline.isNote(element)
        markedStarts(if (isMark) tag else RAISED[styled] ?: tag, element)
        return FilterResult.CONTINUE
    }

    private fun markedStarts(
        tag: String,
        element: Element,
    ) {
        if (tag == "tspan" && MarkdownInline.isLine(element)) startLine(1)
        if (verbatim > 0 || element in blocksInside) return
        val mark = Tags.RAISED[tag]
        val marks = Tags.MARKED[tag]
        when {
            mark != null -> capture(element) { put(MarkdownInline.raised(mark, it, element)) }
            marks != null -> capture(element) { put(MarkdownInline.between(marks, it)) }
            tag == "q" -> capture(element) { put("\"$it\"") }
            tag != "a" -> Unit
            MarkdownInline.isNote(element) -> capture(element) { put(MarkdownInline.bracketed(it)) }
            else -> MarkdownInline.farTarget(element)?.let { href ->
                capture(element) { put(MarkdownInline.link(it, href)) }
            }
        }
    }

    private fun blockStarts(
        tag: String,
        element: Element,
    ) {
        val isFree = captures.isEmpty()
        when {
            tag in Tags.HEADINGS -> {
                startLine(2)
                if (isFree) capture(element) { heading(tag[1] - '0', it) }
            }
            tag in Tags.VERBATIM && isFree -> {
                verbatim += 1
                capture(element, ::verbatimEnds)
            }
            tag == "li" -> itemStarts(element)
            tag in Tags.LISTS -> {
                startLine(if (lists.isEmpty()) 2 else 1)
                lists += if (tag == "ol") ListNumbers(element) else null
            }
            tag == "blockquote" && isFree -> {
                startLine(2)
                lines.push("> ", "")
            }
            tag == "dd" && isFree -> {
                startLine(1)
                lines.push("    ", ":   ")
            }
            tag == "table" && element !in layout && isFree -> {
                startLine(2)
                tables += MarkdownTable()
            }
            tag == "tr" && tables.isNotEmpty() && isFree -> tables.last().startRow()
            (tag == "td" || tag == "th") && tables.isNotEmpty() && isFree -> capture(element) { cell(element, it) }
            tag == "hr" -> {
                startLine(2)
                put("---")
            }
            tag !in Tags.ROW_GROUPS -> startLine(if (tag in Tags.LINES) 1 else 2)
        }
    }

    private fun ended(
        tag: String,
        element: Element,
    ) {
        if (tag in Tags.LISTS) lists.removeLastOrNull()
        val end = ends.remove(element)
        when {
            end != null -> end()
            tag in Tags.APART -> put(" ")
            tag !in Tags.BLOCKS -> Unit
            captures.isNotEmpty() -> startLine(2)
            tag == "li" -> {
                val isEmpty = lines.hasMark
                lines.pop()
                lines.startLine(1, exactly = !isEmpty)
            }
            tag in Tags.LISTS -> startLine(if (lists.isEmpty()) 2 else 1)
            tag == "blockquote" || tag == "dd" -> {
                lines.pop()
                startLine(if (tag == "dd") 1 else 2)
            }
            tag == "table" && element !in layout && tables.isNotEmpty() -> {
                for (line in tables.removeLast().lines()) {
                    lines.startLine(1)
                    lines.write(line)
                }
                startLine(2)
            }
            tag == "dt" -> lines.startLine(1, exactly = true)
            tag == "text" -> startLine(1)
            tag !in Tags.ROW_GROUPS && tag != "tr" -> startLine(2)
        }
    }

    private fun itemStarts(element: Element) {
        val mark = element.attr(ITEM_MARK).ifEmpty { lists.lastOrNull()?.mark(element).orEmpty() }
        startLine(1)
        if (captures.isEmpty()) {
            lines.push(if (mark.isEmpty()) "  " else " ".repeat(mark.length + 1), mark.ifEmpty { "-" } + " ")
        } else if (mark.isNotEmpty()) {
            put("$mark ")
        }
    }

    private fun heading(
        level: Int,
        text: String,
    ) {
        val words = MarkdownInline.words(text)
        lines.startLine(2)
        if (words.isNotEmpty()) lines.write("#".repeat(level) + " " + words)
        lines.startLine(2)
    }

    private fun verbatimEnds(text: String) {
        verbatim -= 1
        val rows = text.split('\n').map { it.trimEnd() }.dropWhile { it.isEmpty() }.dropLastWhile { it.isEmpty() }
        lines.startLine(2)
        if (rows.isNotEmpty()) lines.write((listOf("```") + rows + "```").joinToString("\n"))
        lines.startLine(2)
    }

    private fun cell(
        element: Element,
        text: String,
    ) {
        val columns = MarkdownTable.span(element.attr("colspan"))
        val rows = MarkdownTable.span(element.attr("rowspan"))
        tables.last().add(MarkdownTable.Cell(MarkdownInline.words(text), columns, rows))
    }

    companion object {
        /** An attribute of `li`: what stands before it, where that isn't counted. */
        const val ITEM_MARK = "edgeinfinite-mark"
        private val SPACE = Regex("[ \t\r\n\u000c]+")
        private val RAISED = mapOf<Effect?, String>(Effect.SUPER to "sup", Effect.SUB to "sub")

        /** Elements within each other that are held back; what is deeper is written as it stands. */
        private const val MOST_CAPTURES = 16
    }
}
