package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element
import org.jsoup.nodes.TextNode

/** Inline elements as text; as Python's `inline.py`. */
internal object MarkdownInline {
    private val SPACE = Regex("\\s+")
    private val SIMPLE = Regex("[-+−–]?[\\p{L}\\p{N}_.,′*]+[-+−–]?")
    private val ORDINAL = Regex("st|nd|rd|th", RegexOption.IGNORE_CASE)
    private val BRACKETED = Regex("[\\[(].*[\\])]", RegexOption.DOT_MATCHES_ALL)
    private val FAR = Regex("(?:https?://|mailto:)[^\\s<>]+", RegexOption.IGNORE_CASE)
    private val NOTE_MARK = Regex("\\s{0,9}(?:\\d{1,4}|[*†‡§¶]{1,3})\\s{0,9}")
    private val EMPHASISED = Regex("(\\*{1,3})([^*]+)\\1")
    private val TEXT_FIELDS =
        setOf("text", "search", "email", "tel", "url", "number", "date", "time", "month", "week")
    private val DECORATIVE = setOf("presentation", "none")
    private val FILE = Regex("\\S+\\.(?:png|jpe?g|gif|svg|webp|bmp|tiff?)", RegexOption.IGNORE_CASE)
    private val WHOLE = Regex("\\d{1,9}")
    private val SLASHES = setOf("/", "\u2044", "\u2215")
    private val PAGE_MARKS = setOf("pagebreak", "doc-pagebreak")
    private val PAGE_CLASSES =
        setOf("pagebreak", "page-break", "page-number", "pageno", "pagenum", "pagenumber")
    private const val LONGEST_PAGE = 20
    private val INITIAL = Regex("[\"'“‘«„]?\\p{L}")
    private val NOTES = setOf("noteref", "footnote-ref")

    /** White space as one space, none at the ends. */
    fun words(text: String): String = text.replace(SPACE, " ").trim()

    /** A superscript or subscript, so that it isn't read as a part of the number before it. */
    fun raised(
        mark: String,
        text: String,
        element: Element,
    ): String {
        val words = words(text).replace(EMPHASISED, "$2")
        val before = before(element)
        val isSign = words.length == 1 && !words[0].isLetterOrDigit() && words !in "+-−–*′"
        return when {
            words.isEmpty() -> if (text.isEmpty()) "" else " "
            mark == "^" && BRACKETED.matches(words) -> words
            mark == "^" && ORDINAL.matches(words) && before?.isDigit() == true -> words
            mark == "^" && isSign -> words
            element.children().any { it.normalName() == "a" && it.attr("href").ifEmpty { "#" }.startsWith("#") } ->
                bracketed(words)
            mark == "^" && isInNote(element) -> bracketed(words)
            mark == "^" && WHOLE.matches(words) && isNumerator(element) ->
                if (before?.isDigit() == true) " $words" else words
            mark == "_" && WHOLE.matches(words) && isDenominator(element) -> words
            SIMPLE.matches(words) -> mark + words
            else -> "$mark($words)"
        }
    }

    /** Whether a raised number is what a link to a note shows. */
    private fun isInNote(element: Element): Boolean {
        val outer = element.parent()?.takeIf { it.normalName() == "a" && it.childrenSize() == 1 } ?: return false
        val first = (outer.childNode(0) as? TextNode)?.wholeText.orEmpty()
        return first.isBlank() && '#' in outer.attr("href") && farTarget(outer) == null
    }

    /** Whether a raised number is the upper half of a fraction: `<sup>1</sup>/<sub>2</sub>`. */
    private fun isNumerator(element: Element): Boolean {
        val between = (element.nextSibling() as? TextNode)?.wholeText.orEmpty()
        return between.trim() in SLASHES && isNumber(element.nextElementSibling(), "sub")
    }

    private fun isDenominator(element: Element): Boolean {
        val above = element.previousElementSibling()
        return above != null && isNumber(above, "sup") && isNumerator(above)
    }

    private fun isNumber(
        element: Element?,
        tag: String,
    ) = element?.normalName() == tag && element.childrenSize() == 0 && WHOLE.matches(element.wholeText().trim())

    /** Whether an element says where a printed page begins, which is no part of the text. */
    fun isPageMark(element: Element): Boolean {
        val kinds = element.attributes().filter { it.key.endsWith("type") || it.key.endsWith("role") }
        val isSaid = kinds.any { kind -> kind.value.split(SPACE).any { it in PAGE_MARKS } }
        if (!isSaid && element.classNames().none { it.lowercase() in PAGE_CLASSES }) return false
        return element.wholeText().length <= LONGEST_PAGE
    }

    private fun before(element: Element) = (element.previousSibling() as? TextNode)?.wholeText?.lastOrNull()

    /** Whether a link is a footnote's mark: by what it says, or a number that ends a word. */
    fun isNote(link: Element): Boolean {
        val kinds = link.attributes().filter { it.key.endsWith("type") || it.key.endsWith("role") }
        val said = kinds.flatMap { it.value.split(SPACE) }
        if ("noteref" in said || "doc-noteref" in said || link.classNames().any { it.lowercase() in NOTES }) return true
        if (link.children().isNotEmpty() || '#' !in link.attr("href") || farTarget(link) != null) return false
        return NOTE_MARK.matches(link.wholeText()) && before(link)?.isLetterOrDigit() == true
    }

    /** The mark of a footnote, or what a picture shows. */
    fun bracketed(text: String): String =
        words(text).let { if (it.isEmpty() || BRACKETED.matches(it)) it else "[$it]" }

    /** What stands in a picture's place: its alternative text, "" if that is none. */
    fun picture(element: Element): String {
        val words = words(element.attr("alt"))
        val isHidden = element.attr("aria-hidden") == "true" || element.attr("role") in DECORATIVE
        val after = (element.nextSibling() as? TextNode)?.wholeText?.firstOrNull()
        return when {
            words.isEmpty() || isHidden || FILE.matches(words) -> ""
            INITIAL.matches(words) && after?.isLetter() == true -> words // with the rest of its word behind it
            element.parent()?.normalName() == "a" -> words
            else -> bracketed(words)
        }
    }

    /** What an `input` shows: whether it is ticked, or the text in it. */
    fun field(element: Element): String {
        val kind = element.attr("type").trim().lowercase().ifEmpty { "text" }
        return when (kind) {
            "checkbox", "radio" -> if (element.hasAttr("checked")) " [x] " else " [ ] "
            in TEXT_FIELDS -> " ${element.attr("value")} "
            else -> " "
        }
    }

    /** Whether a piece of SVG's text begins elsewhere, as lines do. */
    fun isLine(tspan: Element): Boolean = tspan.hasAttr("x") && (tspan.hasAttr("y") || tspan.hasAttr("dy"))

    /** Marked text; white space stays outside the marks. */
    fun between(
        mark: String,
        text: String,
    ): String {
        val words = text.trim()
        if (words.isEmpty()) return text
        var marks = mark
        if (mark == "`") while (marks in words) marks += mark
        val start = text.indexOf(words)
        return text.take(start) + marks + words + marks + text.drop(start + words.length)
    }

    /** Where a link goes if that still means something in the text alone, else null. */
    fun farTarget(link: Element): String? =
        link.attr("href").trim().takeIf(FAR::matches)?.replace("(", "%28")?.replace(")", "%29")

    /** A link to another place than this document. */
    fun link(
        text: String,
        href: String,
    ): String {
        val words = words(text)
        if (words.isEmpty()) return text
        val before = if (text.first().isWhitespace()) " " else ""
        val after = if (text.last().isWhitespace()) " " else ""
        val plain = href.replace("%28", "(").replace("%29", ")")
        val isSame = words == href || words == plain || words == href.removePrefix("mailto:")
        return before + (if (isSame) words else "[$words]($href)") + after
    }
}
