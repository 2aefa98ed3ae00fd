package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/** Elements of a Word file lie in each other deeper than they do in any document. */
internal class TooDeepException : RuntimeException()

/**
 * Reads a Word file's elements into pieces of a page; what mammoth does for Python's reader, after its `word_parts.py`.
 *
 * @param styles of the document.
 * @param numbers what Word shows before paragraphs; null where it isn't shown, as in notes.
 * @param links addresses by the ids of their relationships.
 * @param notes the document's.
 * @param embed is given the id of a document within this one, which isn't read.
 * @param spend is given how many elements or characters were read now; it throws if they are too many by then.
 */
internal class WordBody(
    private val styles: WordStyles,
    private val numbers: WordNumbers?,
    private val links: Map<String, String>,
    private val notes: WordNotes,
    private val embed: (String) -> Unit,
    private val spend: (Int) -> Unit,
) {
    private val fields = WordFields()

    /** Of the run that is read. */
    private var font: String? = null

    /** What goes on in the next paragraph: one whose end was deleted, or a large first letter. */
    private val carried = ArrayList<Element>()

    /** What stands in boxes beside the paragraph that is read. */
    private var beside = ArrayList<Piece>()

    /**
     * Reads an element that stands among others of the document's body, or a note's.
     *
     * @throws TooDeepException it is nested deeper than documents are.
     */
    fun read(
        element: Element,
        into: Piece,
        depth: Int = 0,
    ) {
        if (depth > DEEPEST) throw TooDeepException()
        spend(1)
        when (element.local) {
            "p" -> paragraph(element, into, depth)
            "r" -> run(element, into, depth)
            "t" -> put(WordSymbols.shown(element.wholeText(), font), into)
            "tab", "ptab" -> put("\t", into)
            "br", "cr" -> if (element.value("type") in BREAKS) into.add(Piece("br", isKept = true))
            "noBreakHyphen" -> put("\u2011", into)
            "softHyphen" -> put("\u00ad", into)
            "sym" -> put(WordSymbols.of(element.value("font").orEmpty(), element.value("char").orEmpty()), into)
            "tbl" -> table(element, into, depth)
            "tr" -> if (!WordTable.isDeleted(element)) row(element, into, depth)
            "tc" -> inside(element, into, WordTable.cellOf(element), depth)
            "hyperlink" -> hyperlink(element, into, depth)
            "bookmarkStart" -> element.value("name")?.takeIf { it != UNSEEN }?.let { into.add(bookmark(it)) }
            "oMath", "oMathPara" -> formula(element, into)
            "drawing" -> drawing(element, into, depth)
            "pict" -> beside.add(Piece(GROUP).also { all(element, it, depth) })
            "fldChar" -> {
                fields.meet(element)?.let { into.add(it) }
                put(fields.shown, into)
            }
            "fldSimple" -> {
                if (!hasText(element)) put(EqFields.of(element.value("instr").orEmpty()).orEmpty(), into)
                all(element, into, depth)
            }
            "instrText" -> fields.instruct(element.wholeText())
            "footnoteReference", "endnoteReference" -> notes.mark(element)?.let { into.add(it) }
            "AlternateContent" -> choiceOf(element)?.let { all(it, into, depth) }
            "sdt" -> element.child("sdtContent")?.let { all(it, into, depth) }
            "altChunk" -> embed(element.value("id").orEmpty())
            in READ_THROUGH -> all(element, into, depth)
        }
    }

    private fun all(
        element: Element,
        into: Piece,
        depth: Int,
    ) {
        for (child in element.children()) read(child, into, depth + 1)
    }

    private fun inside(
        element: Element,
        into: Piece,
        piece: Piece,
        depth: Int,
    ) {
        all(element, piece, depth)
        into.add(piece)
    }

    private fun put(
        text: String,
        into: Piece,
    ) {
        spend(text.length)
        fields.see(text)
        into.add(text)
    }

    private fun paragraph(
        element: Element,
        into: Piece,
        depth: Int,
    ) {
        val properties = element.child("pPr")
        if (properties?.child("rPr")?.child("del") != null || isInitial(element, properties)) {
            carried += element.children()
            return
        }
        val own = carried + element.children()
        val outline = styles.outlineOf(properties)
        val inner = Piece(outline.last(), label = numbers?.label(element))
        carried.clear()
        val outside = beside
        beside = ArrayList()
        for (child in own) read(child, inner, depth + 1)
        var whole = inner
        for (tag in outline.dropLast(1).asReversed()) {
            val isAny = tag == WordStyles.ANY_LIST
            val outer = Piece(if (isAny) "ul" else tag, isJoined = true, orIn = if (isAny) "ol" else tag)
            whole = outer.apply { add(whole) }
        }
        into.add(whole)
        for (box in beside) into.addAllOf(box)
        beside = outside
    }

    /** Whether it is a large first letter, which is a paragraph of its own, before the rest of its word. */
    private fun isInitial(
        element: Element,
        properties: Element?,
    ): Boolean {
        val isLarge = properties?.child("framePr")?.value("dropCap") in INITIALS
        return isLarge && element.nextElementSibling()?.local == "p"
    }

    private fun run(
        element: Element,
        into: Piece,
        depth: Int,
    ) {
        val properties = element.child("rPr")
        val all = RunProperties.of(properties).orElse(styles.propertiesOf(properties))
        if (all.isHidden == true) return
        val outer = font
        font = all.font
        put(WordFields.entryOf(element), into)
        var content = Piece(GROUP)
        all(element, content, depth)
        font = outer
        fields.link?.let { (name, target) ->
            val link = Piece("a", mapOf(name to target), isJoined = true).apply { addAllOf(content) }
            content = Piece(GROUP).apply { add(link) }
        }
        for (tag in marksOf(properties, all.raised)) {
            val marked = Piece(tag, isJoined = true).apply { addAllOf(content) }
            content = Piece(GROUP).apply { add(marked) }
        }
        into.addAllOf(content)
    }

    /** The elements that a run becomes, from inside out. */
    private fun marksOf(
        properties: Element?,
        raised: String?,
    ): List<String> {
        if (properties == null) return emptyList()
        val isMarked = { name: String -> properties.child(name)?.let { it.value() !in FALSE } ?: false }
        return listOfNotNull(
            "s".takeIf { isMarked("strike") },
            raised,
            "em".takeIf { isMarked("i") },
            "strong".takeIf { isMarked("b") },
            "strong".takeIf { styles.isStrong(properties) },
        )
    }

    /** A row; empty cells stand where it begins later or ends earlier than its table. */
    private fun row(
        element: Element,
        into: Piece,
        depth: Int,
    ) {
        val row = Piece("tr", isKept = true)
        repeat(WordTable.skipped(element, "gridBefore")) { row.add(WordCell(1, isBelow = false)) }
        all(element, row, depth)
        repeat(WordTable.skipped(element, "gridAfter")) { row.add(WordCell(1, isBelow = false)) }
        into.add(row)
    }

    private fun table(
        element: Element,
        into: Piece,
        depth: Int,
    ) {
        val table = Piece("table", isKept = true)
        all(element, table, depth)
        WordTable.join(table)
        into.add(table)
    }

    private fun hyperlink(
        element: Element,
        into: Piece,
        depth: Int,
    ) {
        val id = element.attributes().firstOrNull { it.localName() == "id" && ':' in it.key }?.value
        val anchor = element.value("anchor")
        val far = links[id]
        val target = if (far != null && anchor != null) far.substringBefore('#') + "#" + anchor else far
        val href = target ?: anchor?.let { "#$it" }
        if (href == null) {
            all(element, into, depth)
        } else {
            inside(element, into, Piece("a", mapOf("href" to href), isJoined = true), depth)
        }
    }

    private fun bookmark(name: String) = Piece("a", mapOf("id" to name), isJoined = true, isKept = true)

    private fun formula(
        element: Element,
        into: Piece,
    ) {
        val isAlone = element.parent()?.local in setOf("body", "tc", "txbxContent")
        val place = if (isAlone) Piece("p") else into
        put(WordFormulas.of(element), place)
        if (isAlone) into.add(place)
    }

    private fun drawing(
        element: Element,
        into: Piece,
        depth: Int,
    ) {
        put(pictureIn(element), into)
        for (box in boxesIn(element)) beside.add(Piece(GROUP).also { all(box, it, depth) })
    }

    /** The outermost boxes of text of a drawing. */
    private fun boxesIn(drawing: Element): List<Element> {
        val found = ArrayList<Element>()
        val left = ArrayList<Element>(drawing.children().asReversed())
        while (left.isNotEmpty()) {
            val element = left.removeAt(left.lastIndex)
            when (element.local) {
                "txbxContent" -> found.add(element)
                "drawing" -> Unit
                else -> left.addAll(element.children().asReversed())
            }
        }
        return found
    }

    /** What a picture shows, in its author's words. */
    private fun pictureIn(drawing: Element): String {
        if (drawing.parent()?.local != "r" || drawing.allNamed("pic").isEmpty()) return ""
        val said = MarkdownInline.words(drawing.allNamed("docPr").joinToString(" ") { it.value("descr").orEmpty() })
        return if (said.isEmpty()) "" else "[$said]"
    }

    /** The fallback; where there is none, or nothing in it, the first choice. */
    private fun choiceOf(element: Element): Element? {
        val fallback = element.child("Fallback")
        val choice = element.child("Choice")
        val isBetter = choice != null && (fallback == null || (hasText(choice) && !hasText(fallback)))
        return if (isBetter) choice else fallback
    }

    private fun hasText(element: Element) = element.allNamed("t").any { it.wholeText().isNotEmpty() }

    private companion object {
        const val DEEPEST = 200

        /** A piece that only holds others for a while. */
        const val GROUP = "span"

        /** The bookmark of where its author was last. */
        const val UNSEEN = "_GoBack"

        /** Of pages and columns, too, so that words aren't joined. */
        val BREAKS = setOf(null, "", "textWrapping", "page", "column")
        val INITIALS = setOf("drop", "margin")
        val FALSE = setOf("0", "false")
        val READ_THROUGH =
            setOf("ins", "moveTo", "customXml", "smartTag", "bdo", "dir", "ruby", "rubyBase") +
                setOf("object", "group", "rect", "roundrect", "shape", "textbox", "txbxContent")
    }
}
