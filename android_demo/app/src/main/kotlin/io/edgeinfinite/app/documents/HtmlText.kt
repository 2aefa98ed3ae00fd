package io.edgeinfinite.app.documents

import org.jsoup.Jsoup
import org.jsoup.nodes.Document
import org.jsoup.nodes.Element
import org.jsoup.select.NodeTraversor
import java.util.Collections
import java.util.IdentityHashMap

/** HTML to text: headings, lists, tables and links as Markdown, everything that isn't read left out. */
internal object HtmlText {
    /**
     * The text of a page; what it says of its own encoding counts.
     *
     * @param sheet reads a style sheet by its address; "" if it can't be had.
     * @param check is given the number of characters while they are written, and throws if they are too many.
     */
    fun of(
        name: String,
        html: ByteArray,
        sheet: (String) -> String = { "" },
        check: (Long) -> Unit,
    ): Extracted {
        val (page, guess, left) = TextDecoder.decoded(name, html, EncodingNames.stated(html))
        val parsed = Jsoup.parse(page)
        return Extracted(of(parsed, sheet, check), guess, left, CleanText.oneLine(parsed.title()))
    }

    /** As above, of a page that is parsed. */
    fun of(
        page: Document,
        sheet: (String) -> String = { "" },
        check: (Long) -> Unit,
    ): String {
        val classes = Styles.effects(Styles.rules(page, sheet))
        val writer = MarkdownWriter(layoutTables(page), blocksInside(page), aroundMath(page), classes, check)
        NodeTraversor.filter(writer, page.body())
        return CleanText.tidied(writer.text())
    }

    /** The tables that only lay a page out: they hold tables or headings, or say so. */
    private fun layoutTables(page: Document): Set<Element> {
        val found = identitySet()
        for (table in page.getElementsByTag("table")) {
            if (table.attr("role") == "presentation" || table.attr("role") == "none") found.add(table)
        }
        for (tag in Tags.HEADINGS + "table") {
            for (element in page.getElementsByTag(tag)) {
                var outer = element.parent()
                while (outer != null && (outer.normalName() != "table" || found.add(outer))) outer = outer.parent()
            }
        }
        return found
    }

    /** The elements right around a formula, in which pages also draw it, hidden from readers. */
    private fun aroundMath(page: Document): Set<Element> {
        val found = identitySet()
        for (math in page.getElementsByTag("math")) {
            var outer = math.parent()
            repeat(MATH_AROUND) {
                outer?.takeIf { it.normalName() !in Tags.BLOCKS }?.also(found::add).let { outer = it?.parent() }
            }
        }
        return found
    }

    private const val MATH_AROUND = 4

    private fun identitySet(): MutableSet<Element> = Collections.newSetFromMap(IdentityHashMap())

    /** The inline elements with blocks in them, which are written as if they weren't there. */
    private fun blocksInside(page: Document): Set<Element> {
        val found = identitySet()
        for (element in page.getAllElements()) {
            if (element.normalName() !in Tags.BLOCKS) continue
            var outer = element.parent()
            while (outer != null && outer.normalName() !in Tags.BLOCKS && found.add(outer)) outer = outer.parent()
        }
        return found
    }
}

/** What elements are; as Python's `tags.py`. */
internal object Tags {
    val UNREAD =
        setOf("script", "style", "noscript", "template", "nav", "head", "title", "rt", "rp", "rtc") +
            setOf("desc", "metadata")
    val HEADINGS = setOf("h1", "h2", "h3", "h4", "h5", "h6")
    val LISTS = setOf("ul", "ol", "menu", "dir")
    val VERBATIM = setOf("pre", "listing", "xmp", "plaintext")
    val ROW_GROUPS = setOf("tbody", "thead", "tfoot")
    val LINES = setOf("option", "legend", "dt", "text")
    val BLOCKS =
        HEADINGS + LISTS + VERBATIM + ROW_GROUPS +
            setOf("table", "tr", "td", "th", "caption", "address", "article", "aside", "blockquote", "body") +
            setOf("center", "dd", "details", "dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure") +
            setOf("footer", "form", "frameset", "header", "hgroup", "hr", "html", "legend", "li", "main") +
            setOf("noframes", "optgroup", "option", "p", "search", "section", "summary") +
            setOf("text") // SVG's: a label of a drawing, or a line of a page that is drawn

    /** Inline elements that are boxes of their own, no part of the word before or after. */
    val APART = setOf("button", "select", "textarea", "input", "object", "canvas", "video", "audio") + "marquee"
    val MARKED =
        listOf("b", "strong").associateWith { "**" } + listOf("i", "em").associateWith { "*" } +
            listOf("s", "del", "strike").associateWith { "~~" } +
            listOf("code", "kbd", "samp", "tt").associateWith { "`" }
    val RAISED = mapOf("sup" to "^", "sub" to "_")

    /** Whether a script is a formula that no program has drawn yet. */
    fun isTex(script: Element): Boolean =
        script.normalName() == "script" && script.attr("type").startsWith("math/tex", ignoreCase = true) &&
            script.previousElementSibling()?.className().orEmpty().contains("mathjax", ignoreCase = true).not()

    /** Whether EPUB's `switch` has something in this one's place: a formula, else what all read. */
    fun isOtherChoice(element: Element): Boolean {
        val name = element.normalName().substringAfter(':')
        val parent = element.parent() ?: return false
        if (name !in CHOICES || parent.normalName().substringAfter(':') != "switch") return false
        val hasFormula = { one: Element -> one.getElementsByTag("math").isNotEmpty() }
        return if (name == "default") hasFormula(parent) else !hasFormula(element)
    }

    private val CHOICES = setOf("case", "default")
}
