package io.edgeinfinite.core

internal const val DRY_BASE = 1.75

/** Tokens that may be repeated freely; as Python's `repeats.py`, which says why. */
internal const val DRY_ALLOWED = 4

private const val NEWEST = 1024
private const val LONGEST = 40

/**
 * Tokens that would go on with a repetition of the answer, and how many tokens it has already, from
 * [DRY_ALLOWED] to [LONGEST]: what DRY makes less likely.
 */
internal fun repeated(answer: List<Int>): Map<Int, Int> {
    val newest = answer.takeLast(NEWEST)
    val end = newest.lastIndex
    val found = HashMap<Int, Int>()
    for (at in 0 until end) { // newest[at] is the last token of an earlier stretch
        val most = minOf(LONGEST, at + 1)
        var length = 0
        while (length < most && newest[at - length] == newest[end - length]) length++
        if (length >= DRY_ALLOWED) found.merge(newest[at + 1], length, ::maxOf)
    }
    return found
}
