package io.edgeinfinite.core

/**
 * What kotlinx's JSON reader lets pass: a name that stands twice in an object, of which readers take
 * different ones, and nesting that ends in a stack overflow.
 *
 * @return what is wrong, null for nothing. Text that isn't JSON is the reader's to refuse.
 */
internal fun unsafeJson(text: String): String? {
    val open = ArrayList<HashSet<String>>()
    var last: String? = null // the string just read
    var at = 0
    while (at < text.length) {
        when (text[at]) {
            '{', '[' -> {
                open += HashSet<String>()
                if (open.size > DEEPEST_JSON) return "it is nested too deeply"
            }
            '}', ']' -> open.removeLastOrNull()
            '"' -> {
                val end = endOfString(text, at)
                if (end < 0) return UNESCAPED
                last = text.substring(at + 1, minOf(end, text.length))
                at = end
            }
            ':' -> if (last != null && open.lastOrNull()?.add(last) == false) return "'$last' stands in it twice"
        }
        at += 1
    }
    return null
}

/**
 * The same for large files whose names may stand twice, as Python's `json` has it: the last one counts.
 *
 * @return what is wrong, null for nothing.
 */
internal fun deepJson(text: String): String? {
    var depth = 0
    var at = 0
    while (at < text.length) {
        when (text[at]) {
            '{', '[' -> if (++depth > DEEPEST_JSON) return "it is nested too deeply"
            '}', ']' -> depth -= 1
            '"' -> at = endOfString(text, at).also { if (it < 0) return UNESCAPED }
        }
        at += 1
    }
    return null
}

/** Where a string ends; -1 if a control character stands in it, which JSON forbids. */
private fun endOfString(
    text: String,
    start: Int,
): Int {
    var at = start + 1
    while (at < text.length && text[at] != '"') {
        if (text[at] < ' ') return -1
        at += if (text[at] == '\\') 2 else 1
    }
    return at
}

private const val UNESCAPED = "a control character stands in a string"

/** A phone's threads have small stacks, and one level takes several calls. */
internal const val DEEPEST_JSON = 100
