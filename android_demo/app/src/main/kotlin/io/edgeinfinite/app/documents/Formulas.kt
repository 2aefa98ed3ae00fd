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
            tag == "msqrt" -> "√${grouped(parts.joinToString(""))}"
            tag == "mfenced" -> fenced(element, parts)
            else -> own(element) + parts.joinToString("")
        }
    }

    private fun fenced(
        element: Element,
        parts: List<String>,
    ) = parts.joinToString(",", element.attr("open").ifEmpty { "(" }, element.attr("close").ifEmpty { ")" })

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
