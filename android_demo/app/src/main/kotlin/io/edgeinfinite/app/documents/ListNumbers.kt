package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/** The numbers of an ordered list's items, as browsers count them; as Python's `list_marks.py`. */
internal class ListNumbers(
    list: Element,
) {
    private val kind = kindOf(list)
    private val step = if (list.hasAttr("reversed")) -1 else 1
    private var next =
        numberOf(list.attr("start")) ?: if (step < 0) list.children().count { it.normalName() == "li" } else 1

    /** The next item's mark. */
    fun mark(item: Element): String {
        val number = numberOf(item.attr("value")) ?: next
        next = number + step
        return numeral(kindOf(item).ifEmpty { kind }, number) + "."
    }

    companion object {
        private val ROMAN =
            listOf(1000 to "m", 900 to "cm", 500 to "d", 400 to "cd", 100 to "c", 90 to "xc", 50 to "l") +
                listOf(40 to "xl", 10 to "x", 9 to "ix", 5 to "v", 4 to "iv", 1 to "i")
        private const val MOST_ROMAN = 3999
        private const val LETTERS = 26
        private val STYLE =
            Regex(
                "list-style(?:-type)?\\s{0,9}:\\s{0,9}(lower|upper)-(alpha|latin|roman)\\b",
                RegexOption.IGNORE_CASE,
            )
        private val NUMBER = Regex("\\s{0,9}(-?[0-9]{1,9})")

        /** A number in letters (`a`, `A`), Roman (`i`, `I`) or digits (anything else). */
        fun numeral(
            kind: String,
            number: Int,
        ): String {
            val text =
                when {
                    kind.lowercase() == "i" && number in 1..MOST_ROMAN -> roman(number)
                    kind.lowercase() == "a" && number > 0 -> letters(number)
                    else -> return "$number"
                }
            return if (kind == kind.lowercase()) text else text.uppercase()
        }

        private fun roman(number: Int): String {
            var left = number
            return ROMAN.joinToString("") { (value, sign) -> sign.repeat(left / value).also { left %= value } }
        }

        private fun letters(number: Int): String {
            val signs = StringBuilder()
            var left = number
            while (left > 0) {
                signs.append('a' + (left - 1) % LETTERS)
                left = (left - 1) / LETTERS
            }
            return signs.reverse().toString()
        }

        private fun kindOf(element: Element): String {
            val stated = element.attr("type").trim()
            if (stated in setOf("a", "A", "i", "I")) return stated
            val (case, kind) = STYLE.find(element.attr("style"))?.destructured ?: return ""
            val sign = if (kind.lowercase() == "roman") "i" else "a"
            return if (case.lowercase() == "upper") sign.uppercase() else sign
        }

        private fun numberOf(value: String): Int? = NUMBER.matchAt(value, 0)?.let { it.groupValues[1].toInt() }
    }
}
