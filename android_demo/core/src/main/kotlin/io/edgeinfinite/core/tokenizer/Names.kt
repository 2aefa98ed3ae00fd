package io.edgeinfinite.core.tokenizer

/**
 * Texts to find in others. Some vocabularies have thousands that begin alike (`<unused0>` to
 * `<unused6241>`), so what stands at a place is looked up by its length.
 *
 * @param names empty ones are never found.
 */
internal class Names(
    names: Collection<String>,
) {
    private val known = names.filterTo(HashSet()) { it.isNotEmpty() }

    /** By first character, the longest first. */
    private val lengths: Map<Char, IntArray> =
        known.groupBy { it[0] }.mapValues { (_, alike) ->
            alike.map { it.length }.distinct().sortedDescending().toIntArray()
        }

    /** The longest name that begins at a place of the text; null when there is none. */
    fun at(
        text: String,
        place: Int,
    ): String? {
        for (length in lengths[text[place]] ?: return null) {
            if (place + length > text.length) continue
            val name = text.substring(place, place + length)
            if (name in known) return name
        }
        return null
    }

    /** Whether a name stands anywhere in the text. */
    fun areIn(text: String): Boolean = text.indices.any { at(text, it) != null }

    /** The text with [mark] behind the first character of every name, also of one within another. */
    fun marked(
        text: String,
        mark: String,
    ): String {
        val marked = StringBuilder(text.length)
        for (place in text.indices) {
            marked.append(text[place])
            if (at(text, place) != null) marked.append(mark)
        }
        return marked.toString()
    }

    /** The text with what [other] gives in each name's place, the longest of those that begin together. */
    fun replaced(
        text: String,
        other: (String) -> String,
    ): String {
        val replaced = StringBuilder(text.length)
        var place = 0
        while (place < text.length) {
            val name = at(text, place)
            if (name == null) replaced.append(text[place]) else replaced.append(other(name))
            place += name?.length ?: 1
        }
        return replaced.toString()
    }
}
