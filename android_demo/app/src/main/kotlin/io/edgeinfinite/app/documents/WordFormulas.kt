package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/** Word's own markup of formulas as text on one line, as Python's `formulas.py` writes it. */
internal object WordFormulas {
    private const val DEEPEST = 60

    /** The text of an `oMath` or `oMathPara`. */
    fun of(formula: Element): String = MarkdownInline.words(written(formula, 0))

    private fun written(
        element: Element,
        depth: Int,
    ): String {
        val tag = element.local
        if (depth > DEEPEST) return element.text()
        if (tag == "t") return element.wholeText()
        if (tag.endsWith("Pr") || tag == "del") return ""
        val parts = { name: String -> element.childrenNamed(name).map { written(it, depth + 1) } }
        val part = { name: String -> parts(name).joinToString("") }
        val scripts = { Formulas.raised("_", part("sub")) + Formulas.raised("^", part("sup")) }
        return when (tag) {
            "f" -> Formulas.grouped(part("num")) + "/" + Formulas.grouped(part("den"))
            "sSup", "sSub", "sSubSup" -> part("e") + scripts()
            "sPre" -> scripts() + part("e")
            "limLow" -> part("e") + Formulas.raised("_", part("lim"))
            "limUpp" -> part("e") + Formulas.raised("^", part("lim"))
            "rad" -> root(part("e"), part("deg").trim())
            "nary" -> property(element, "chr", "∫") + scripts() + " " + part("e")
            "d" -> {
                val inner = parts("e").joinToString(property(element, "sepChr", "|"))
                property(element, "begChr", "(") + inner + property(element, "endChr", ")")
            }
            "func" -> part("fName") + " " + Formulas.grouped(part("e"))
            "bar" -> part("e") + if (property(element, "pos", "bot") == "bot") "\u0332" else "\u0305"
            "acc" -> part("e") + property(element, "chr", "\u0302")
            "m" ->
                element.childrenNamed("mr").joinToString("; ", "[", "]") { row ->
                    row.children().joinToString(", ") { written(it, depth + 2).trim() }
                }
            "eqArr", "oMathPara" -> (parts("e") + parts("oMath")).filter(String::isNotBlank).joinToString("; ")
            else -> Formulas.joined(element.children().map { it.local to written(it, depth + 1) })
        }
    }

    /** A root on one line; without a degree the square root. */
    fun root(
        of: String,
        degree: String,
    ) = if (degree.isEmpty()) "√${Formulas.grouped(of)}" else "${Formulas.grouped(of)}^(1/$degree)"

    /** A property's sign, such as the brackets around a matrix. */
    private fun property(
        element: Element,
        name: String,
        default: String,
    ): String {
        val all = element.children().filter { it.local.endsWith("Pr") }
        val found = all.firstNotNullOfOrNull { it.child(name) } ?: return default
        return found.value().orEmpty()
    }
}
