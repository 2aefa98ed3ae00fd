package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/** Cells that cover others, in tables of Word. */
internal object WordTable {
    private const val MOST_COLUMNS = 100
    private const val MOST_SKIPPED = 20

    /** Whether a row was deleted, which is only tracked. */
    fun isDeleted(row: Element): Boolean = row.child("trPr")?.child("del") != null

    /** Columns that a row leaves out at its beginning (`gridBefore`) or end (`gridAfter`). */
    fun skipped(
        row: Element,
        name: String,
    ): Int = wholeOf(row.child("trPr")?.child(name)?.value(), 0).coerceIn(0, MOST_SKIPPED)

    /** An empty cell. */
    fun cellOf(element: Element): WordCell {
        val properties = element.child("tcPr")
        val columns = properties?.child("gridSpan")?.value()?.let(MarkdownTable::span) ?: 1
        val merge = properties?.child("vMerge")
        val isBelow = merge != null && merge.value().let { it.isNullOrEmpty() || it == "continue" }
        return WordCell(minOf(columns, MOST_COLUMNS), isBelow)
    }

    /** Joins cells that go on with those above them, if the table holds nothing but rows of cells. */
    fun join(table: Piece) {
        val rows = table.pieces ?: return
        val cells = rows.map { row -> row.pieces?.filterIsInstance<WordCell>().orEmpty() }
        if (rows.withIndex().any { (at, row) -> row.pieces?.size != cells[at].size }) return
        val above = HashMap<Int, WordCell>()
        for ((at, row) in rows.withIndex()) {
            var column = 0
            for (cell in cells[at]) {
                val first = above[column]
                if (cell.isBelow && first != null) {
                    first.rows += 1
                } else {
                    above[column] = cell
                    cell.isBelow = false
                }
                column += cell.columns
            }
            row.remove(cells[at].filterTo(HashSet()) { it.isBelow })
        }
    }
}
