package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/**
 * What paragraphs are by their styles and lists: headings, items, or plain. The rules are those of mammoth, the
 * library of Python's reader.
 *
 * @param styles the part of that name; null if it is missing.
 * @param numbering the same.
 */
internal class WordStyles(
    styles: Element?,
    numbering: Element?,
) {
    /** A level of a list. */
    private class Level(
        val at: String,
        val isOrdered: Boolean,
        val style: String?,
    )

    private class Base(
        val levels: Map<String, Level>,
        val linked: String?,
    )

    /** Names of styles in capitals by their kinds and ids, and the lists that styles of lists stand for. */
    private val names = HashMap<Pair<String, String>, String>()
    private val lists = HashMap<String, String?>()
    private val basedOn = HashMap<String, String?>()
    private val own = HashMap<String, RunProperties>()
    private val whole = HashMap<String, RunProperties>()
    private val headings = HashMap<String?, MatchResult?>()
    private val bases = LinkedHashMap<String, Base>()
    private val nums = HashMap<String, String>()
    private val byStyle = HashMap<String, Level>()

    init {
        for (style in styles?.childrenNamed("style").orEmpty()) {
            val kind = style.value("type") ?: PARAGRAPH
            val id = style.value("styleId").orEmpty()
            names.putIfAbsent(kind to id, style.child("name")?.value().orEmpty().uppercase())
            basedOn[id] = style.child("basedOn")?.value()
            own[id] = RunProperties.of(style.child("rPr"))
            if (kind == "numbering") lists.putIfAbsent(id, listBy(style))
        }
        for (one in numbering?.children().orEmpty()) {
            when (one.local) {
                "abstractNum" -> bases[one.value("abstractNumId").orEmpty()] = baseOf(one)
                "num" -> nums[one.value("numId").orEmpty()] = one.child("abstractNumId")?.value().orEmpty()
            }
        }
        for (level in bases.values.flatMap { it.levels.values }) level.style?.let { byStyle[it] = level }
    }

    private fun baseOf(element: Element): Base {
        val levels = LinkedHashMap<String, Level>()
        val (stated, other) = element.childrenNamed("lvl").partition { it.value("ilvl") != null }
        for (level in stated) levels[level.value("ilvl").orEmpty()] = levelOf(level)
        // Damaged documents have levels without a number.
        for (level in other.takeLast(1)) levels.putIfAbsent(FIRST, levelOf(level))
        return Base(levels, element.child("numStyleLink")?.value())
    }

    private fun levelOf(element: Element): Level {
        val isOrdered = element.child("numFmt")?.value() != "bullet"
        return Level(element.value("ilvl") ?: FIRST, isOrdered, element.child("pStyle")?.value())
    }

    /** What a run's style says, or what that is based on. */
    fun propertiesOf(run: Element?): RunProperties {
        val style = run?.child("rStyle")?.value() ?: return RunProperties.NONE
        return whole.getOrPut(style) {
            chainOf(style).fold(RunProperties.NONE) { found, id -> found.orElse(own.getValue(id)) }
        }
    }

    private fun chainOf(style: String?): List<String> {
        val found = ArrayList<String>()
        var id = style
        while (id != null && id in own && found.size < MOST_ABOVE) {
            found.add(id)
            id = basedOn[id]
        }
        return found
    }

    private fun headingOf(style: String?): MatchResult? =
        headings.getOrPut(style) {
            chainOf(style).firstNotNullOfOrNull { HEADING.matchEntire(names[PARAGRAPH to it].orEmpty()) }
        }

    /** Whether a run's style makes it strong. */
    fun isStrong(run: Element?): Boolean = nameOf(CHARACTER, run?.child("rStyle")?.value()) == "STRONG"

    /**
     * The elements of the page that a paragraph is in, from outside in: it goes on in those that are there, but begins
     * the last.
     *
     * @param properties the paragraph's; null if it has none.
     */
    fun outlineOf(properties: Element?): List<String> {
        val style = properties?.child("pStyle")?.value()
        val name = nameOf(PARAGRAPH, style).orEmpty()
        val ofLists = LIST.matchEntire(name)?.destructured
        val heading = style?.let(HEADING_ID::matchEntire) ?: headingOf(style)
        return when {
            name == "TITLE" -> listOf("h1")
            name == "SUBTITLE" -> listOf("h2")
            ofLists != null -> nested(ofLists.component2().toInt(), ofLists.component1() == "NUMBER")
            heading != null -> listOf("h" + heading.groupValues[1])
            style == "Heading" || name == "HEADING" -> listOf("h1")
            name in PLAIN -> listOf("p")
            else -> ofLevel(levelOf(style, properties?.child("numPr")))
        }
    }

    private fun ofLevel(level: Level?): List<String> {
        val at = level?.at?.takeIf { it in DEEPEST }?.toInt() ?: return listOf("p")
        return nested(at + 1, level.isOrdered)
    }

    private fun nested(
        depth: Int,
        isOrdered: Boolean,
    ): List<String> = List(depth - 1) { listOf(ANY_LIST, "li") }.flatten() + (if (isOrdered) "ol" else "ul") + "li"

    private fun levelOf(
        style: String?,
        numbering: Element?,
    ): Level? {
        val num = numbering?.child("numId")?.value()
        val at = numbering?.child("ilvl")?.value()
        if (num != null && at != null) return levelIn(num, at)
        return style?.let(byStyle::get) ?: num?.let { levelIn(it, FIRST) }
    }

    private fun levelIn(
        num: String,
        at: String,
    ): Level? {
        var key: String? = num
        val seen = HashSet<String>()
        while (key != null && seen.add(key)) {
            val list = nums[key]?.let { bases[it] } ?: return null
            if (list.linked == null) return list.levels[at]
            key = lists[list.linked]
        }
        return null
    }

    private fun listBy(style: Element): String? {
        val numbering = style.child("pPr")?.child("numPr")
        return numbering?.child("numId")?.value()
    }

    private fun nameOf(
        kind: String,
        id: String?,
    ): String? = id?.let { names[kind to it] }

    companion object {
        /** In an outline: a list of whatever kind. */
        const val ANY_LIST = "ul|ol"
        private const val PARAGRAPH = "paragraph"
        private const val CHARACTER = "character"
        private const val FIRST = "0"

        /** Styles that a style is based on. */
        private const val MOST_ABOVE = 20
        private val DEEPEST = listOf("0", "1", "2", "3", "4")
        private val LIST = Regex("LIST (BULLET|NUMBER) ([2-5])")
        private val HEADING_ID = Regex("Heading([1-6])")
        private val HEADING = Regex("HEADING ([1-6])")

        /** Styles of notes, in Word and in LibreOffice. */
        private val PLAIN = setOf("FOOTNOTE TEXT", "ENDNOTE TEXT", "ANNOTATION TEXT", "FOOTNOTE", "ENDNOTE")
    }
}
