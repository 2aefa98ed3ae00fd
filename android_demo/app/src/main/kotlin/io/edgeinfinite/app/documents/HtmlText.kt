package io.edgeinfinite.app.documents

import org.jsoup.Jsoup
import org.jsoup.nodes.Document
import org.jsoup.nodes.Element
import org.jsoup.nodes.Node
import org.jsoup.nodes.TextNode
import org.jsoup.select.NodeTraversor
import org.jsoup.select.NodeVisitor
import java.io.ByteArrayInputStream

/** HTML to text: headings and lists as Markdown, everything that isn't read left out. */
internal object HtmlText {
    private const val UNREAD = "script, style, noscript, template, svg, math, nav, head"

    /** The text of a page; what it says of its own encoding counts. */
    fun of(html: ByteArray): String = of(Jsoup.parse(ByteArrayInputStream(html), null, ""))

    private fun of(page: Document): String {
        page.select(UNREAD).remove()
        return Writer().also { NodeTraversor.traverse(it, page.body()) }.text()
    }

    private class Writer : NodeVisitor {
        private val out = StringBuilder()

        /** Newlines before what follows. */
        private var breaks = 0
        private var isSpaced = false

        /** Of a list's item or a heading, before its first words. */
        private var mark = ""

        fun text(): String = tidied(out.toString())

        override fun head(
            node: Node,
            depth: Int,
        ) {
            if (node is TextNode) write(node)
            if (node !is Element) return
            val tag = node.normalName()
            when {
                tag == "br" -> out.append('\n')
                tag == "li" -> item(node)
                tag in CELLS && node.previousElementSibling() != null -> out.append(" | ")
                tag in HEADINGS -> {
                    breaks = 2
                    mark = "#".repeat(tag[1] - '0') + " "
                }
                tag in LINES || isInnerList(node) -> breaks = maxOf(breaks, 1)
                node.isBlock && tag !in CELLS -> breaks = 2
            }
        }

        private fun isInnerList(node: Element) = node.normalName() in LISTS && node.parent()?.normalName() == "li"

        override fun tail(
            node: Node,
            depth: Int,
        ) {
            if (node !is Element) return
            val tag = node.normalName()
            when {
                tag == "br" -> Unit
                tag == "li" || tag in LINES || isInnerList(node) -> breaks = maxOf(breaks, 1)
                node.isBlock && tag !in CELLS -> {
                    breaks = 2
                    mark = ""
                }
            }
        }

        private fun item(node: Element) {
            val list = node.parent()
            val number = list?.takeIf { it.normalName() == "ol" }?.let { node.elementSiblingIndex() + 1 }
            val depth = node.parents().count { it.normalName() in LISTS }
            breaks = maxOf(breaks, 1)
            mark = "  ".repeat(maxOf(0, depth - 1)) + if (number == null) "- " else "$number. "
        }

        private fun write(node: TextNode) {
            val isVerbatim = node.parent()?.let { it is Element && it.closest("pre") != null } == true
            val words = if (isVerbatim) node.wholeText else node.wholeText.replace(SPACE, " ")
            if (words.isBlank()) {
                isSpaced = isSpaced || words.isNotEmpty()
                return
            }
            if (breaks > 0 || mark.isNotEmpty()) {
                if (out.isNotEmpty()) out.append("\n".repeat(breaks))
                out.append(mark)
                breaks = 0
                mark = ""
                out.append(if (isVerbatim) words else words.trimStart())
            } else {
                if (isSpaced && !words.first().isWhitespace()) out.append(' ')
                out.append(words)
            }
            isSpaced = false
        }
    }

    /** Text without control characters, trailing white space and rows of blank lines. */
    fun tidied(text: String): String =
        text
            .replace(NO_TEXT, "")
            .replace('\u00a0', ' ')
            .replace(TRAILING, "\n")
            .replace(ROWS, "\n\n")
            .trim('\n', ' ')

    private val SPACE = Regex("[ \t\r\n\u000c]+")
    private val NO_TEXT = Regex("[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ufffe\uffff]")
    private val TRAILING = Regex("[^\\S\n]+\n")
    private val ROWS = Regex("\n{3,}")
    private val LISTS = setOf("ul", "ol")
    private val CELLS = setOf("td", "th")
    private val LINES = setOf("tr", "dt", "dd")
    private val HEADINGS = setOf("h1", "h2", "h3", "h4", "h5", "h6")
}
