package io.edgeinfinite.app.documents

/** A table while its rows are read; as Python's `tables.py`. */
internal class MarkdownTable {
    /** Text on one line, and how many columns and rows it covers. */
    class Cell(
        val text: String,
        val columns: Int,
        val rows: Int,
    )

    private val begun = ArrayList<ArrayList<Cell>>()

    fun startRow() {
        begun += ArrayList<Cell>()
    }

    fun add(cell: Cell) {
        if (begun.isEmpty()) startRow()
        begun.last() += cell
    }

    /**
     * The table's lines; its first row is the header.
     *
     * Covered places are empty cells. There are at most a few for each cell that the table has, whatever
     * its cells say that they cover.
     */
    fun lines(): List<String> {
        val rows = begun.filter { it.isNotEmpty() }
        val width = rows.maxOfOrNull { it.size } ?: 0
        var allowed = EMPTY_A_CELL * rows.sumOf { it.size } + width
        val lines = ArrayList<String>()
        var covered = emptyMap<Int, Int>()
        for (row in rows) {
            val texts = ArrayList<String>()
            val below = HashMap<Int, Int>()
            for ((at, left) in covered) if (left > 1) below[at] = left - 1
            for (cell in row) {
                while (texts.size in covered) texts += ""
                val start = texts.size
                texts += cell.text.replace("|", "\\|")
                repeat(minOf(cell.columns, width, allowed) - 1) { texts += "" }
                var cost = texts.size - start - 1
                val whole = cost + (cell.rows - 1) * (cost + 1)
                if (cell.rows > 1) {
                    if (whole <= allowed) for (at in start until texts.size) below[at] = cell.rows - 1
                    cost = whole
                }
                allowed = maxOf(0, allowed - cost)
            }
            while (texts.size in covered) texts += ""
            covered = below
            lines += texts.joinToString(" | ", "| ", " |")
            if (lines.size == 1) lines += "|" + " --- |".repeat(texts.size)
        }
        return lines
    }

    companion object {
        private const val EMPTY_A_CELL = 2
        private const val MOST = 1000
        private const val DIGITS = 6

        /** A `colspan` or `rowspan` as browsers read it, at least 1. */
        fun span(value: String): Int {
            val digits = value.trim().take(DIGITS)
            return if (digits.all { it in '0'..'9' }) (digits.toIntOrNull() ?: 1).coerceIn(1, MOST) else 1
        }
    }
}
