package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/**
 * The footnotes and endnotes of a Word file, in the order in which its text refers to them.
 *
 * @param parts the roots of both parts by their names, where the file has them.
 */
internal class WordNotes(
    parts: Map<String, Element>,
) {
    /** A note, and the name of the part that it is in. */
    class Note(
        val part: String,
        val element: Element,
    )

    private val known = HashMap<Pair<String, String?>, Note>()
    private val found = ArrayList<Note>()

    init {
        for ((part, root) in parts) {
            for (note in root.children()) {
                val isNote = note.local == "footnote" || note.local == "endnote"
                if (!isNote || note.value("type") in SEPARATORS) continue
                known[note.local to note.value("id")] = Note(part, note)
            }
        }
    }

    /** Those that were referred to until now. */
    val referred: List<Note> get() = found.toList()

    /** What stands in the text where it refers to a note; null if there is no such note. */
    fun mark(reference: Element): Piece? {
        val kind = reference.local.removeSuffix("Reference")
        val id = reference.value("id")
        found += known[kind to id] ?: return null
        val link = Piece("a", mapOf("href" to "#$kind-$id", "id" to "$kind-ref-$id"))
        return Piece("sup").apply { add(link.apply { add("[${found.size}]") }) }
    }

    private companion object {
        val SEPARATORS = setOf("separator", "continuationSeparator")
    }
}
