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
    /** A list's counter, its levels, and the numbers that it starts again with. */
    private class Numbered(
        val name: String,
        val levels: Map<Int, Element>,
        val starts: Map<Int, Int>,
    )

    private val bases = HashMap<String, Map<Int, Element>>()
    private val nums = HashMap<String, Element>()
    private val known = HashMap<String, Numbered>()
    private val counts = HashMap<String, HashMap<Int, Int>>()
    private val restarted = HashSet<Pair<String, Int>>()
    private val styles = styles?.children().orEmpty().associateBy { it.value("styleId") }

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
            count[level] = count[level]?.plus(1) ?: startOf(own)
        }
        count.keys.removeAll { it > level }
        return if (formatOf(own) == "bullet") null else written(list.levels, level, count)
    }

    private fun listBy(key: String): Numbered =
        known.getOrPut(key) {
            val num = nums[key]
            val name = num?.child("abstractNumId")?.value().orEmpty()
            val levels = HashMap(bases[name].orEmpty())
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
        var (key, level) = numbered(properties)
        var style = properties.child("pStyle")?.value()
        var left = MOST_ABOVE
        while (style != null && left > 0 && (key == null || level == null)) {
            val ofStyle = styles[style] ?: break
            val own = ofStyle.child("pPr")?.let(::numbered)
            if (key == null && own?.first != null) {
                key = own.first
                level = level ?: levelOf(own.first.orEmpty(), style)
            }
            level = level ?: own?.second
            style = ofStyle.child("basedOn")?.value()
            left -= 1
        }
        return key?.takeIf { it != "0" }?.let { it to (level ?: 0) }
    }

    /** The level that a list gives to a style. */
    private fun levelOf(
        key: String,
        style: String,
    ): Int? =
        listBy(key)
            .levels.entries
            .firstOrNull { it.value.child("pStyle")?.value() == style }
            ?.key

    private fun numbered(properties: Element): Pair<String?, Int?> {
        val found = properties.child("numPr") ?: return null to null
        return found.child("numId")?.value() to found.child("ilvl")?.value()?.let { wholeOf(it, 0) }
    }

    /** The levels that an element has, or the one that it is for. */
    private fun levelsIn(
        parent: Element,
        only: Int? = null,
    ): Map<Int, Element> =
        parent
            .childrenNamed("lvl")
            .map { wholeOf(it.value("ilvl"), only ?: 0) to it }
            .filter { (at) -> at < MOST_LEVELS && (only == null || only == at) }
            .toMap()

    /** A label by the level's own pattern, such as `%1.%2`. */
    private fun written(
        levels: Map<Int, Element>,
        level: Int,
        count: Map<Int, Int>,
    ): String {
        val own = levels.getValue(level)
        if (formatOf(own) == "none") return ""
        val isLegal = own.child("isLgl") != null
        val pattern = own.child("lvlText")?.value().orEmpty()
        val label =
            PLACE.replace(pattern) { found ->
                val at = found.groupValues[1].toInt() - 1
                val of = levels[at]
                val number = count[at] ?: of?.let(::startOf) ?: 1
                val kind = if (isLegal || of == null) "" else KINDS[formatOf(of)].orEmpty()
                if (kind == ZERO) "$number".padStart(2, '0') else ListNumbers.numeral(kind, number)
            }
        return MarkdownInline.words(label).take(LONGEST)
    }

    private fun formatOf(level: Element) = level.child("numFmt")?.value() ?: "decimal"

    private fun startOf(level: Element) = wholeOf(level.child("start")?.value(), 1)

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

        /** Of a list, as Word has them. */
        const val MOST_LEVELS = 9

        /** Styles that are based on each other. */
        const val MOST_ABOVE = 20
    }
}
