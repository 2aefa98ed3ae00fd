package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/** The fields of a Word file, whose parts are signs between its runs: links and check boxes among them. */
internal class WordFields {
    /** A field that is open: its beginning, and what it is once that is known. */
    private class Field(
        val start: Element,
        var isKnown: Boolean = false,
        var isLink: Boolean = false,
        var isTicked: Boolean? = null,
        var equation: String? = null,
        var hasResult: Boolean = false,
    )

    private val opened = ArrayList<Field>()
    private val links = ArrayList<Pair<String, String>>()
    private val instruction = StringBuilder()

    /** What the field shows that has just ended, and that has no text in the file; "" for nothing. */
    var shown = ""
        private set

    /** The innermost link around: an attribute of `a` and its value; null outside of links. */
    val link: Pair<String, String>? get() = links.lastOrNull()

    /** A piece of what a field is. */
    fun instruct(text: String) {
        instruction.append(text)
    }

    /** Text that stands there, of which the result of the innermost field may be made. */
    fun see(text: String) {
        if (text.isNotBlank()) opened.lastOrNull()?.takeIf { it.isKnown }?.hasResult = true
    }

    /**
     * Goes over a field's beginning, middle or end.
     *
     * @return what is seen of it then; null for nothing.
     */
    fun meet(sign: Element): Piece? {
        shown = ""
        when (sign.value("fldCharType")) {
            "begin" -> {
                opened += Field(sign)
                instruction.clear()
            }
            "separate" -> opened.lastOrNull()?.let(::understand)
            "end" -> {
                val field = opened.removeLastOrNull() ?: return null
                understand(field)
                if (field.isLink) links.removeAt(links.lastIndex)
                if (!field.hasResult) shown = field.equation.orEmpty()
                return field.isTicked?.let(::box)
            }
        }
        return null
    }

    private fun box(isTicked: Boolean): Piece {
        val attributes = mapOf("type" to "checkbox") + if (isTicked) mapOf("checked" to "checked") else emptyMap()
        return Piece("input", attributes, isKept = true)
    }

    private fun understand(field: Field) {
        if (field.isKnown) return
        field.isKnown = true
        val link = LINK.find(instruction)
        if (link != null) {
            val (place, quoted, plain) = link.destructured
            val target = if (link.groups[2] != null) quoted else plain
            field.isLink = true
            links += "href" to (if (place.isEmpty()) target else "#$target")
        } else if (BOX.find(instruction) != null) {
            val box = field.start.child("ffData")?.child("checkBox")
            val name = if (box?.child("checked") != null) "checked" else "default"
            field.isTicked = box?.child(name)?.let { it.value() !in FALSE } ?: false
        } else {
            field.equation = EqFields.of("$instruction")
        }
    }

    companion object {
        private val LINK = Regex("^\\s*HYPERLINK\\s+(\\\\l\\s+)?(?:\"(.*)\"|([^\\\\]\\S*))")
        private val BOX = Regex("^\\s*FORMCHECKBOX")
        private val FALSE = setOf("0", "false")

        /** What was chosen in a list of an old form, which begins in a run; "" if there is none. */
        fun entryOf(run: Element): String {
            val list =
                run.childrenNamed("fldChar").firstNotNullOfOrNull { it.child("ffData")?.child("ddList") } ?: return ""
            val named = list.childrenNamed("listEntry").map { it.value().orEmpty() }
            val chosen = list.child("result")?.value()?.ifEmpty { null } ?: "0"
            return named.getOrNull(wholeOf(chosen, named.size)).orEmpty()
        }
    }
}
