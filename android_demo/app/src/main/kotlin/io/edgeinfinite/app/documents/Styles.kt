package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/** What a piece of a line is: lines of its own, a cell, hidden, lowered or raised. */
internal enum class Effect { BLOCK, CELL, HIDDEN, SUB, SUPER }

/** What a page's styles do to its text; as Python's `styles.py`. */
internal object Styles {
    private const val LONGEST = 1 shl 20
    private val COMMENT = Regex("/\\*.*?(?:\\*/|$)", RegexOption.DOT_MATCHES_ALL)
    private val RULE = Regex("([^{};@]{1,2000})\\{([^{}]{0,4000})\\}")
    private val SELECTOR = Regex("[a-zA-Z]{0,20}\\.([\\w-]{1,100})")
    private val ALIGN =
        Regex(
            "(?<![\\w-])vertical-align\\s{0,9}:\\s{0,9}(?:(super|text-top)|(sub|text-bottom)|" +
                "(-?)(\\d{0,4}(?:\\.\\d{1,6})?)(em|ex|%|pt|px))(?![\\w%])",
            RegexOption.IGNORE_CASE,
        )
    private val DISPLAY = Regex("(?<![\\w-])display\\s{0,9}:\\s{0,9}([a-z-]{1,20})", RegexOption.IGNORE_CASE)

    /** By which a piece is raised; less sets a line straight. */
    private val LEAST = mapOf("em" to 0.15, "ex" to 0.3, "%" to 15.0, "pt" to 2.0, "px" to 2.0)
    private val BLOCKS =
        setOf("block", "flex", "flow-root", "grid", "list-item", "table", "table-caption", "table-row")
    private val NOT_SHOWN = setOf("none", "table-column", "table-column-group")

    /** What an element's declarations do to it; null for nothing. */
    fun effect(declarations: String): Effect? {
        val shown =
            DISPLAY
                .find(declarations)
                ?.groupValues
                ?.get(1)
                .orEmpty()
                .lowercase()
        if (shown in NOT_SHOWN) return Effect.HIDDEN
        return ALIGN.find(declarations)?.let(::raised) ?: when (shown) {
            in BLOCKS -> Effect.BLOCK
            "table-cell" -> Effect.CELL
            else -> null
        }
    }

    private fun raised(align: MatchResult): Effect? {
        val (high, low, minus, by, unit) = align.destructured
        if (high.isNotEmpty() || low.isNotEmpty()) return if (high.isNotEmpty()) Effect.SUPER else Effect.SUB
        val isFar = (by.toDoubleOrNull() ?: 0.0) >= LEAST.getValue(unit.lowercase())
        return if (!isFar) {
            null
        } else if (minus.isEmpty()) {
            Effect.SUPER
        } else {
            Effect.SUB
        }
    }

    /** What classes do, by their names; of two rules for one the later holds. */
    fun effects(rules: Sequence<String>): Map<String, Effect> {
        val found = HashMap<String, Effect>()
        var left = LONGEST
        for (text in rules) {
            val plain = text.take(left).replace(COMMENT, "")
            left -= plain.length
            for (rule in RULE.findAll(plain)) {
                val what = effect(rule.groupValues[2])
                if (what == null || what == Effect.HIDDEN) continue // a class that hides, a script often shows
                for (selector in rule.groupValues[1].split(',')) {
                    SELECTOR.matchEntire(selector.trim())?.let { found[it.groupValues[1]] = what }
                }
            }
        }
        return found
    }

    /** What an element's own style or its classes do to it; null for nothing. */
    fun of(
        element: Element,
        classes: Map<String, Effect>,
    ): Effect? {
        effect(element.attr("style"))?.let { return it }
        if (element.hasAttr("hidden") && element.attr("hidden") != "until-found") return Effect.HIDDEN
        return if (classes.isEmpty()) null else element.classNames().firstNotNullOfOrNull(classes::get)
    }

    /** The page's style sheets in their order; [sheet] reads those that it names. */
    fun rules(
        page: Element,
        sheet: (String) -> String,
    ): Sequence<String> =
        page.select("style, link").asSequence().map { element ->
            val isSheet = "stylesheet" in element.attr("rel").lowercase().split(' ')
            if (element.normalName() == "style") {
                element.data()
            } else if (isSheet) {
                sheet(element.attr("href"))
            } else {
                ""
            }
        }
}
