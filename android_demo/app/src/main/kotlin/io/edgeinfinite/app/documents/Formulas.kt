package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element
import org.jsoup.nodes.TextNode

/** MathML as text on one line, as Python's `formulas.py` writes it. */
internal object Formulas {
    private const val DEEPEST = 60
    private val ATOM = Regex("[-−]?[\\p{L}\\p{N}_.]+|\\(.*\\)", RegexOption.DOT_MATCHES_ALL)
    private val SPACE = Regex("\\s+")
    private val UNREAD = setOf("annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark", "none")

    fun of(math: Element): String {
        val tex = math.getElementsByTag("annotation").firstOrNull { it.attr("encoding") == "application/x-tex" }
        return (tex?.wholeText() ?: written(math, 0)).replace(SPACE, " ").trim()
    }

    private fun written(
        element: Element,
        depth: Int,
    ): String {
        val tag = element.normalName().substringAfter(':')
        if (tag in UNREAD) return ""
        if (depth > DEEPEST) return element.text()
        val children = element.children()
        if (children.isEmpty()) {
            val text = element.wholeText()
            val isWord = tag == "mi" && text.trim().length > 1
            return if (tag == "mtext" || tag == "mspace" || isWord) " $text " else text.trim()
        }
        if (tag == "mtable") {
            return children.joinToString("; ", "[", "]") { row ->
                row.children().joinToString(", ") { written(it, depth + 2).trim() }
            }
        }
        val read = if (tag == "semantics") children.take(1) else children
        val parts = read.map { written(it, depth + 1) }
        return when {
            tag == "mfrac" && parts.size == 2 -> "${grouped(parts[0])}/${grouped(parts[1])}"
            tag in setOf("msup", "mover") && parts.size == 2 -> parts[0] + raised("^", parts[1])
            tag in setOf("msub", "munder") && parts.size == 2 -> parts[0] + raised("_", parts[1])
            tag in setOf("msubsup", "munderover") && parts.size == 3 ->
                parts[0] + raised("_", parts[1]) + raised("^", parts[2])
            tag == "mroot" && parts.size == 2 -> "${grouped(parts[0])}^(1/${parts[1].trim()})"
            tag == "msqrt" -> "√${grouped(joined(read.map { it.normalName().substringAfter(':') }.zip(parts)))}"
            tag == "mfenced" -> fenced(element, parts)
            tag == "mmultiscripts" -> multiscripts(children, parts)
            else -> own(element) + joined(read.map { it.normalName().substringAfter(':') }.zip(parts))
        }
    }

    private fun fenced(
        element: Element,
        parts: List<String>,
    ) = parts.joinToString(",", element.attr("open").ifEmpty { "(" }, element.attr("close").ifEmpty { ")" })

    /** A base with scripts on both sides: those before it stand before it. */
    private fun multiscripts(
        children: List<Element>,
        parts: List<String>,
    ): String {
        val split = children.indexOfFirst { it.normalName().substringAfter(':') == "mprescripts" }
        val after = if (split < 0) parts.drop(1) else parts.subList(1, split)
        val before = if (split < 0) emptyList() else parts.drop(split + 1)
        return scripts(before) + parts[0] + scripts(after)
    }

    private fun scripts(texts: List<String>): String {
        val (below, above) = texts.withIndex().partition { it.index % 2 == 0 }
        return raised("_", below.joinToString("") { it.value }) + raised("^", above.joinToString("") { it.value })
    }

    /**
     * Pieces beside each other: what a fraction, a power or a root ends is told from what follows.
     *
     * @param parts each one's element and text.
     */
    fun joined(parts: List<Pair<String, String>>): String {
        val out = StringBuilder()
        var wasWhole = false
        for ((tag, text) in parts) {
            if (text.isEmpty()) continue
            val last = out.lastOrNull()
            if (last != null && last.isLetterOrDigit() && text[0].isLetterOrDigit()) {
                val areDigits = last.isDigit() && text[0].isDigit()
                if (wasWhole || tag in FRACTIONS || (tag in COMPOSED && areDigits)) out.append(' ')
            }
            out.append(text)
            wasWhole = tag in COMPOSED
        }
        return out.toString()
    }

    private val FRACTIONS = setOf("mfrac", "f")
    private val COMPOSED =
        FRACTIONS + setOf("msup", "msub", "msubsup", "mover", "munder", "munderover", "msqrt", "mroot") +
            setOf("mmultiscripts", "sSup", "sSub", "sSubSup", "rad", "limLow", "limUpp")

    private fun own(element: Element) =
        element.childNodes().filterIsInstance<TextNode>().joinToString("") { it.text().trim() }

    /** What stands above (`^`) or below (`_`) a base; "" if nothing does. */
    fun raised(
        mark: String,
        text: String,
    ) = if (text.isBlank()) "" else mark + grouped(text)

    /** In brackets, unless it is one word or in brackets already. */
    fun grouped(text: String): String = text.trim().let { if (ATOM.matches(it)) it else "($it)" }
}
