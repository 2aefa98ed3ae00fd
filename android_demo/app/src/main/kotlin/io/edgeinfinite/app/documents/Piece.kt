package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/**
 * An element of the page that a Word file becomes, while it is made. As in mammoth, the library of Python's reader,
 * what is empty is left out, and what may be joined goes on in the element before it.
 *
 * @param tag its name.
 * @param attributes those that tell it from others.
 * @param isJoined whether it goes on in the last element if that has the same name and attributes.
 * @param isKept whether it stays without anything in it.
 * @param orIn a further name of elements that it goes on in.
 * @param label what Word shows before it, null for nothing; then it stays.
 */
internal open class Piece(
    private val tag: String,
    private val attributes: Map<String, String> = emptyMap(),
    private val isJoined: Boolean = false,
    private val isKept: Boolean = false,
    private val orIn: String = tag,
    private val label: String? = null,
) {
    /** Pieces, and texts as [StringBuilder]s. */
    private val inside = ArrayList<Any>()

    /** The pieces in it; null if there is a text between them. */
    val pieces: List<Piece>? get() = inside.filterIsInstance<Piece>().takeIf { it.size == inside.size }

    fun add(text: String) {
        if (text.isEmpty()) return
        (inside.lastOrNull() as? StringBuilder)?.append(text) ?: inside.add(StringBuilder(text))
    }

    fun add(piece: Piece) {
        if (piece.inside.isEmpty() && !piece.isKept && piece.label == null) return
        val last = inside.lastOrNull() as? Piece
        val isSame = last != null && (last.tag == piece.tag || last.tag == piece.orIn)
        if (last != null && isSame && piece.isJoined && last.attributes == piece.attributes) {
            last.addAllOf(piece)
        } else {
            inside += piece
        }
    }

    /** Adds what is in another piece, without it. */
    fun addAllOf(piece: Piece) {
        for (one in piece.inside) if (one is Piece) add(one) else add("$one")
    }

    fun remove(pieces: Set<Piece>) = inside.removeAll { it in pieces }

    /** It with all in it, for the writer of Markdown. */
    fun element(): Element {
        val element = Element(tag)
        for ((name, value) in attributes + ownAttributes()) element.attr(name, value)
        if (label != null && tag != ITEM && label.isNotEmpty()) element.appendText("$label ")
        for (one in inside) if (one is Piece) element.appendChild(one.element()) else element.appendText("$one")
        return element
    }

    protected open fun ownAttributes(): Map<String, String> {
        if (label == null || tag != ITEM) return emptyMap()
        val plain = PLAIN.matchEntire(label)?.groupValues?.get(1)
        return if (plain != null) mapOf("value" to plain) else mapOf(MarkdownWriter.ITEM_MARK to label.ifEmpty { "-" })
    }

    private companion object {
        const val ITEM = "li"

        /** A number as lists of HTML have it. */
        val PLAIN = Regex("([0-9]{1,9})\\.")
    }
}

/**
 * A table's cell.
 *
 * @property columns that it covers.
 * @property isBelow whether it goes on with the cell above it.
 */
internal class WordCell(
    val columns: Int,
    var isBelow: Boolean,
) : Piece("td", isKept = true) {
    /** Rows that it covers. */
    var rows = 1

    override fun ownAttributes(): Map<String, String> = mapOf("colspan" to "$columns", "rowspan" to "$rows")
}
