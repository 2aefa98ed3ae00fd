package io.edgeinfinite.core.tokenizer

import java.util.PriorityQueue

/**
 * Byte pair encoding: text to the ids of a vocabulary.
 *
 * @property vocabulary token to id.
 * @param merges pairs of tokens in the order of their rank.
 * @param unknown token for characters that the vocabulary doesn't have; null drops them.
 * @param fuseUnknown one unknown token for a run of them.
 * @param byteFallback `<0x0A>` tokens instead of the unknown one.
 * @param ignoreMerges a word that is a token is that token, whatever the merges make of it.
 * @throws EdgeInfiniteException a merge names a token that isn't there.
 */
internal class Bpe(
    val vocabulary: Map<String, Int>,
    merges: List<Pair<String, String>>,
    unknown: String? = null,
    private val fuseUnknown: Boolean = false,
    byteFallback: Boolean = false,
    private val ignoreMerges: Boolean = false,
) {
    private val pairs = PairTable(merges.size)
    private val unknownId: Int? = unknown?.let { vocabulary[it] }
    private val ofCharacter = IntArray(Char.MAX_VALUE.code + 1) { NONE }
    private val ofByte: IntArray? = if (byteFallback) byteTokens() else null
    private val cache = WordCache()

    init {
        merges.forEachIndexed { rank, (left, right) ->
            val whole =
                vocabulary[left + right] ?: throw unsupportedTokenizer("a merge to ${left + right}")
            pairs.put(idOf(left), idOf(right), rank, whole)
        }
        for ((token, id) in vocabulary) if (token.length == 1) ofCharacter[token[0].code] = id
    }

    /** Appends the ids of one word: a piece of text that pre-tokenization left whole. */
    fun encode(
        word: String,
        ids: IntList,
    ) {
        if (word.isEmpty()) return
        if (ignoreMerges) vocabulary[word]?.let { return ids.add(it) }
        cache[word]?.let { return ids.addAll(it) }
        val symbols = symbolsOf(word)
        val merged = if (symbols.size > MANY) mergeMany(symbols) else mergeFew(symbols)
        cache[word] = merged
        ids.addAll(merged)
    }

    private fun idOf(token: String): Int =
        vocabulary[token] ?: throw unsupportedTokenizer("a merge of $token, which is no token")

    private fun symbolsOf(word: String): IntArray {
        val symbols = IntList(word.length)
        var at = 0
        var lastIsUnknown = false
        while (at < word.length) {
            val point = word.codePointAt(at)
            val length = Character.charCount(point)
            val id = characterId(word, at, length)
            var isUnknown = false
            if (id != NONE) {
                symbols.add(id)
            } else if (!addBytes(word.substring(at, at + length), symbols) && unknownId != null) {
                isUnknown = true
                if (!(fuseUnknown && lastIsUnknown)) symbols.add(unknownId)
            }
            lastIsUnknown = isUnknown
            at += length
        }
        return symbols.toIntArray()
    }

    private fun characterId(
        word: String,
        at: Int,
        length: Int,
    ): Int =
        if (length == 1) ofCharacter[word[at].code] else vocabulary[word.substring(at, at + length)] ?: NONE

    private fun addBytes(
        character: String,
        symbols: IntList,
    ): Boolean {
        val tokens = ofByte ?: return false
        val bytes = character.toByteArray()
        if (bytes.any { tokens[it.toInt() and 0xff] == NONE }) return false
        bytes.forEach { symbols.add(tokens[it.toInt() and 0xff]) }
        return true
    }

    private fun byteTokens() = IntArray(256) { vocabulary["<0x%02X>".format(it)] ?: NONE }

    /** The lowest-ranked pair first, the leftmost of equals; looks at all pairs every time. */
    private fun mergeFew(symbols: IntArray): IntArray {
        var size = symbols.size
        while (size > 1) {
            var bestAt = -1
            var bestRank = Int.MAX_VALUE
            var result = NONE
            for (at in 0 until size - 1) {
                val slot = pairs.find(symbols[at], symbols[at + 1])
                if (slot >= 0 && pairs.rank(slot) < bestRank) {
                    bestAt = at
                    bestRank = pairs.rank(slot)
                    result = pairs.result(slot)
                }
            }
            if (bestAt < 0) break
            symbols[bestAt] = result
            symbols.copyInto(symbols, bestAt + 1, bestAt + 2, size)
            size -= 1
        }
        return symbols.copyOf(size)
    }

    /** The same with a queue of pairs over a linked list, for words of any length. */
    private fun mergeMany(symbols: IntArray): IntArray {
        val previous = IntArray(symbols.size) { it - 1 }
        val next = IntArray(symbols.size) { if (it + 1 < symbols.size) it + 1 else NONE }
        val queue = PriorityQueue<Candidate>()

        fun offer(at: Int) {
            if (at == NONE || next[at] == NONE) return
            val slot = pairs.find(symbols[at], symbols[next[at]])
            if (slot >= 0) queue += Candidate(pairs.rank(slot), at, pairs.result(slot))
        }
        symbols.indices.forEach(::offer)
        while (true) {
            val candidate = queue.poll() ?: break
            val at = candidate.at
            if (symbols[at] == NONE || next[at] == NONE) continue
            val right = next[at]
            val slot = pairs.find(symbols[at], symbols[right])
            if (slot < 0 || pairs.result(slot) != candidate.result) continue
            symbols[at] = candidate.result
            symbols[right] = NONE
            next[at] = next[right]
            if (next[at] != NONE) previous[next[at]] = at
            offer(previous[at])
            offer(at)
        }
        return symbols.filter { it != NONE }.toIntArray()
    }

    private class Candidate(
        val rank: Int,
        val at: Int,
        val result: Int,
    ) : Comparable<Candidate> {
        override fun compareTo(other: Candidate): Int =
            if (rank != other.rank) rank.compareTo(other.rank) else at.compareTo(other.at)
    }

    private companion object {
        const val NONE = -1
        const val MANY = 48
    }
}

/** The latest words and their tokens; most text repeats its words. Thread-safe. */
private class WordCache {
    private val words =
        object : LinkedHashMap<String, IntArray>(INITIAL, LOAD, true) {
            override fun removeEldestEntry(eldest: MutableMap.MutableEntry<String, IntArray>?) = size > MOST
        }

    @Synchronized
    operator fun get(word: String): IntArray? = words[word]

    @Synchronized
    operator fun set(
        word: String,
        tokens: IntArray,
    ) {
        if (word.length <= LONGEST) words[word] = tokens
    }

    private companion object {
        const val INITIAL = 1024
        const val LOAD = 0.75f
        const val MOST = 10_000
        const val LONGEST = 256
    }
}

/** A growing array of ids. */
internal class IntList(
    capacity: Int = 16,
) {
    private var values = IntArray(maxOf(capacity, 1))

    var size = 0
        private set

    fun add(value: Int) {
        if (size == values.size) values = values.copyOf(2 * size)
        values[size++] = value
    }

    fun addAll(more: IntArray) = more.forEach(::add)

    fun toIntArray(): IntArray = values.copyOf(size)
}
