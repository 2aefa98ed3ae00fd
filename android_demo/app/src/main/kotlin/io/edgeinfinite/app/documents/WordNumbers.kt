package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/**
 * The numbers that Word shows before paragraphs: nothing of them stands in the text. They are counted over the
 * whole document, across what stands between; as Python's `word_numbers.py`.
 *
 * @param numbering the part of that name.
 * @param styles the same; null if it is missing.
 */
internal class WordNumbers(
    numbering: Element,
    styles: Element?,
) {
    /** A level of a list. */
    private class Level(
        element: Element,
    ) {
        val format = element.child("numFmt")?.value() ?: "decimal"
        val start = wholeOf(element.child("start")?.value(), 1)
        val pattern = element.child("lvlText")?.value().orEmpty().take(LONGEST_PATTERN)
        val isLegal = element.child("isLgl") != null
        val style = element.child("pStyle")?.value()
    }

    /** A list's counter, its levels, and the numbers that it starts again with. */
    private class Numbered(
        val name: String,
        val levels: Map<Int, Level>,
        val starts: Map<Int, Int>,
    ) {
        val ofStyles = levels.entries.reversed().associate { (at, level) -> level.style to at }
    }

    /** The list and level that properties state, null for each that they don't. */
    private class Place(
        properties: Element?,
    ) {
        private val stated = properties?.child("numPr")
        val key = stated?.child("numId")?.value()
        val level = stated?.child("ilvl")?.value()?.let { wholeOf(it, 0) }
    }

    private class Style(
        element: Element,
    ) {
        val place = Place(element.child("pPr"))
        val above = element.child("basedOn")?.value()
    }

    private val bases = HashMap<String, Map<Int, Level>>()
    private val nums = HashMap<String, Element>()
    private val known = HashMap<String, Numbered>()
    private val counts = HashMap<String, HashMap<Int, Int>>()
    private val restarted = HashSet<Pair<String, Int>>()
    private val styles = styles?.children().orEmpty().associate { it.value("styleId") to Style(it) }

    init {
        for (one in numbering.children()) {
            val key = one.value("numId")
            if (one.local == "abstractNum") bases[one.value("abstractNumId").orEmpty()] = levelsIn(one)
            if (one.local == "num" && key != null) nums[key] = one
        }
    }

    /** What Word shows before a paragraph, which counts it; null for a bullet and outside of lists. */
    fun label(paragraph: Element): String? {
        val (key, level) = placeOf(paragraph) ?: return null
        val list = listBy(key)
        val own = list.levels[level] ?: return null
        val count = counts.getOrPut(list.name) { HashMap() }
        val start = list.starts[level]
        if (start != null && restarted.add(key to level)) {
            count[level] = start
        } else {
            count[level] = count[level]?.plus(1) ?: own.start
        }
        count.keys.removeAll { it > level }
        return if (own.format == "bullet") null else written(list.levels, own, count)
    }

    private fun listBy(key: String): Numbered =
        known.getOrPut(key) {
            val num = nums[key]
            val name = num?.child("abstractNumId")?.value().orEmpty()
            val levels = LinkedHashMap(bases[name].orEmpty())
            val starts = HashMap<Int, Int>()
            for (changed in num?.childrenNamed("lvlOverride").orEmpty()) {
                val at = wholeOf(changed.value("ilvl"), 0)
                levels += levelsIn(changed, at)
                for (start in changed.childrenNamed("startOverride")) starts[at] = wholeOf(start.value(), 1)
            }
            Numbered(name, levels, starts)
        }

    /** The list and level of a paragraph, by itself or by its style. */
    private fun placeOf(paragraph: Element): Pair<String, Int>? {
        val properties = paragraph.child("pPr") ?: return null
        val own = Place(properties)
        var key = own.key
        var level = own.level
        var id = properties.child("pStyle")?.value()
        var left = MOST_ABOVE
        while (id != null && left > 0 && (key == null || level == null)) {
            val style = styles[id] ?: break
            val stated = style.place.key
            if (key == null && stated != null) {
                key = stated
                level = level ?: listBy(stated).ofStyles[id]
            }
            level = level ?: style.place.level
            id = style.above
            left -= 1
        }
        return key?.takeIf { it != "0" }?.let { it to (level ?: 0) }
    }

    /** The levels that an element has, or the one that it is for. */
    private fun levelsIn(
        parent: Element,
        only: Int? = null,
    ): Map<Int, Level> =
        parent
            .childrenNamed("lvl")
            .map { wholeOf(it.value("ilvl"), only ?: 0) to it }
            .filter { (at) -> at < MOST_LEVELS && (only == null || only == at) }
            .associate { (at, level) -> at to Level(level) }

    /** A label by the level's own pattern, such as `%1.%2`. */
    private fun written(
        levels: Map<Int, Level>,
        own: Level,
        count: Map<Int, Int>,
    ): String {
        if (own.format == "none") return ""
        val label =
            PLACE.replace(own.pattern) { found ->
                val at = found.groupValues[1].toInt() - 1
                val of = levels[at]
                val number = count[at] ?: of?.start ?: 1
                val kind = if (own.isLegal || of == null) "" else KINDS[of.format].orEmpty()
                if (kind == ZERO) "$number".padStart(2, '0') else ListNumbers.numeral(kind, number)
            }
        return MarkdownInline.words(label).take(LONGEST)
    }

    private companion object {
        const val ZERO = "01"
        val KINDS =
            mapOf(
                "lowerLetter" to "a",
                "upperLetter" to "A",
                "lowerRoman" to "i",
                "upperRoman" to "I",
                "decimalZero" to ZERO,
            )
        val PLACE = Regex("%([1-9])")
        const val LONGEST = 40
        const val LONGEST_PATTERN = 400

        /** Of a list, as Word has them. */
        const val MOST_LEVELS = 9

        /** Styles that are based on each other. */
        const val MOST_ABOVE = 20
    }
}
