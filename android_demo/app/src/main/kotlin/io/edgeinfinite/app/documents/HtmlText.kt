package io.edgeinfinite.app.documents

import org.jsoup.Jsoup
import org.jsoup.nodes.Document
import org.jsoup.nodes.Element
import org.jsoup.nodes.Node
import org.jsoup.nodes.TextNode
import org.jsoup.select.NodeFilter
import org.jsoup.select.NodeFilter.FilterResult
import org.jsoup.select.NodeTraversor

/** HTML to text: headings, lists, tables and links as Markdown, everything that isn't read left out. */
internal object HtmlText {
    /** The text of a page; what it says of its own encoding counts. */
    fun of(
        name: String,
        html: ByteArray,
    ): Extracted {
        val (page, guess, left) = TextDecoder.decoded(name, html, TextDecoder.statedEncoding(html))
        return Extracted(of(Jsoup.parse(page)), guess, left)
    }

    private fun of(page: Document): String {
        val writer = MarkdownWriter(layoutTables(page))
        NodeTraversor.filter(writer, page.body())
        return CleanText.tidied(writer.text())
    }

    /** The tables that only lay a page out: they hold tables or headings. */
    private fun layoutTables(page: Document): Set<Element> {
        val found = java.util.Collections.newSetFromMap(java.util.IdentityHashMap<Element, Boolean>())
        for (tag in HEADINGS + "table") {
            for (element in page.getElementsByTag(tag)) {
                var outer = element.parent()
                while (outer != null && (outer.normalName() != "table" || found.add(outer))) outer = outer.parent()
            }
        }
        return found
    }

    internal val HEADINGS = setOf("h1", "h2", "h3", "h4", "h5", "h6")
}

/** Writes a page's elements in one pass. */
private class MarkdownWriter(
    private val layout: Set<Element>,
) : NodeFilter {
    private val out = StringBuilder()

    /** Newlines before what follows. */
    private var breaks = 0
    private var isSpaced = false

    /** Of a list's item or a heading, before its first words. */
    private var mark = ""
    private var verbatim = 0

    /** The next number of each list around, null of those without. */
    private val lists = ArrayDeque<Int?>()

    /** Null outside of tables. */
    private var table: MarkdownTable? = null

    /** Cells of the row; null outside of rows. */
    private var row: MutableList<MarkdownTable.Cell>? = null

    fun text(): String = out.toString()

    override fun head(
        node: Node,
        depth: Int,
    ): FilterResult {
        if (node is TextNode) write(node)
        if (node !is Element) return FilterResult.CONTINUE
        val tag = node.normalName()
        if (tag in UNREAD) return FilterResult.SKIP_ENTIRELY
        inline(tag, node)?.let {
            put(it)
            return FilterResult.SKIP_ENTIRELY
        }
        when {
            tag == "br" -> if (row == null) breakLine() else isSpaced = true
            tag == "pre" -> verbatim += 1
            tag in LISTS -> {
                breaks = maxOf(breaks, if (lists.isEmpty()) 2 else 1)
                lists += if (tag == "ol") node.attr("start").toIntOrNull() ?: 1 else null
            }
            tag == "li" -> item()
            tag == "table" && node !in layout && row == null -> {
                breaks = 2
                table = MarkdownTable()
            }
            tag == "tr" && table != null && isInTable(node) -> row = ArrayList()
            tag in CELLS && row != null -> row?.add(cellOf(node))
            row != null -> isSpaced = isSpaced || node.isBlock
            tag in HtmlText.HEADINGS -> {
                breaks = 2
                mark = "#".repeat(tag[1] - '0') + " "
            }
            tag in LINES -> breaks = maxOf(breaks, 1)
            node.isBlock || tag in BLOCKS -> if (mark.isEmpty()) breaks = 2
        }
        return FilterResult.CONTINUE
    }

    override fun tail(
        node: Node,
        depth: Int,
    ): FilterResult {
        if (node !is Element) return FilterResult.CONTINUE
        val tag = node.normalName()
        when {
            tag == "br" -> Unit
            tag == "pre" -> {
                verbatim -= 1
                breaks = 2
            }
            tag in LISTS -> {
                lists.removeLastOrNull()
                breaks = maxOf(breaks, if (lists.isEmpty()) 2 else 1)
            }
            tag == "tr" && row != null && isInTable(node) -> endRow()
            tag == "table" && node !in layout && row == null -> endTable()
            row != null -> isSpaced = isSpaced || node.isBlock
            tag == "li" -> {
                if (mark.isEmpty()) breaks = 1 else mark = ""
            }
            tag in LINES -> breaks = maxOf(breaks, 1)
            node.isBlock || tag in BLOCKS -> {
                breaks = 2
                if (tag in HtmlText.HEADINGS) mark = ""
            }
        }
        return FilterResult.CONTINUE
    }

    private fun isInTable(row: Element): Boolean {
        var outer = row.parent()
        if (outer != null && outer.normalName() != "table") outer = outer.parent()
        return outer != null && outer !in layout
    }

    /** An inline element that is written as a whole; null for all others. */
    private fun inline(
        tag: String,
        element: Element,
    ): String? {
        if (verbatim > 0) return null
        return when {
            tag == "math" || tag.endsWith(":math") -> Formulas.of(element)
            tag == "sup" || tag == "sub" -> raised(if (tag == "sup") "^" else "_", element)
            tag != "a" || element.children().any { it.isBlock } -> null
            isNote(element) -> bracketed(element.text())
            FAR.matches(element.attr("href").trim()) -> link(element.wholeText(), element.attr("href").trim())
            else -> null
        }
    }

    private fun isNote(link: Element) =
        "noteref" in link.attr("epub:type").split(' ') ||
            "doc-noteref" in link.attr("role").split(' ') ||
            link.hasClass("footnote-ref")

    private fun raised(
        mark: String,
        element: Element,
    ): String {
        val text = element.text().trim()
        val before = out.lastOrNull().takeIf { row == null } ?: row?.lastOrNull()?.text?.lastOrNull()
        return when {
            text.isEmpty() || BRACKETED.matches(text) || (text.length == 1 && text in SIGNS) -> text
            mark == "^" && ORDINAL.matches(text) && before?.isDigit() == true -> text
            mark == "^" && element.children().any { it.normalName() == "a" } -> bracketed(text)
            SIMPLE.matches(text) -> mark + text
            else -> "$mark($text)"
        }
    }

    private fun bracketed(text: String) = if (text.isBlank() || BRACKETED.matches(text)) text else "[${text.trim()}]"

    private fun link(
        text: String,
        href: String,
    ): String {
        val words = text.replace(SPACE, " ").trim()
        if (words.isEmpty() || words == href || words == href.removePrefix("mailto:")) return text.replace(SPACE, " ")
        val before = if (text.first().isWhitespace()) " " else ""
        return "$before[$words]($href)" + if (text.last().isWhitespace()) " " else ""
    }

    private fun item() {
        val number = lists.lastOrNull()
        if (number != null) lists[lists.lastIndex] = number + 1
        breaks = maxOf(breaks, 1)
        mark = "  ".repeat((lists.size - 1).coerceIn(0, DEEPEST)) + if (number == null) "- " else "$number. "
    }

    private fun breakLine() {
        if (breaks == 0 && mark.isEmpty()) out.append('\n')
        isSpaced = false
    }

    private fun cellOf(element: Element) =
        MarkdownTable.Cell(MarkdownTable.span(element.attr("colspan")), MarkdownTable.span(element.attr("rowspan")))

    private fun endRow() {
        table?.add(row.orEmpty())
        row = null
        isSpaced = false
    }

    private fun endTable() {
        for (line in table?.lines().orEmpty()) {
            breaks = maxOf(breaks, 1)
            put(line)
        }
        table = null
        breaks = 2
    }

    private fun write(node: TextNode) = put(if (verbatim > 0) node.wholeText else node.wholeText.replace(SPACE, " "))

    private fun put(words: String) {
        if (words.isBlank()) {
            isSpaced = isSpaced || words.isNotEmpty()
            return
        }
        val cells = row
        if (cells != null) {
            if (cells.isEmpty()) cells += MarkdownTable.Cell(1, 1)
            val text = cells.last().text
            if (isSpaced) text.append(' ')
            text.append(words)
        } else if (breaks > 0 || mark.isNotEmpty()) {
            if (out.isNotEmpty()) out.append("\n".repeat(breaks))
            out.append(mark)
            breaks = 0
            mark = ""
            out.append(if (verbatim > 0) words else words.trimStart())
        } else {
            if (isSpaced && !words.first().isWhitespace() && out.isNotEmpty() && out.last() != '\n') out.append(' ')
            out.append(words)
        }
        isSpaced = false
    }

    private companion object {
        val UNREAD = setOf("script", "style", "noscript", "template", "svg", "nav", "head", "title", "rt", "rp", "rtc")
        val SPACE = Regex("[ \t\r\n\u000c]+")
        val LISTS = setOf("ul", "ol", "menu", "dir")
        val CELLS = setOf("td", "th")
        val LINES = setOf("dt", "dd", "option", "legend")
        val BLOCKS = setOf("tr", "td", "th", "summary", "center", "dialog", "search", "caption", "hgroup")
        val SIMPLE = Regex("[-+−–]?[\\p{L}\\p{N}_.,′*]+[-+−–]?")
        val ORDINAL = Regex("st|nd|rd|th", RegexOption.IGNORE_CASE)
        val BRACKETED = Regex("[\\[(].*[\\])]", RegexOption.DOT_MATCHES_ALL)
        val FAR = Regex("(?:https?://|mailto:)[^\\s()<>]+", RegexOption.IGNORE_CASE)
        const val SIGNS = "™®℠©°"
        const val DEEPEST = 20
    }
}
