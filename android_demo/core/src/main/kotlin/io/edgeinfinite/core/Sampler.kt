package io.edgeinfinite.core

import java.util.Random
import kotlin.math.exp

/**
 * Draws tokens; use one per conversation, so that a seed fixes all of its answers.
 *
 * The kept tokens and their probabilities equal the Python runtime's, but the random numbers are
 * Java's: a seed gives the same answer on every device, but another one than Python.
 */
public class Sampler(
    public val options: SamplingOptions,
) {
    private val random = options.seed?.let(::Random) ?: Random()

    /**
     * The next token.
     *
     * @param logits `[V]`.
     * @param answer the answer's tokens so far; penalties count them.
     * @throws EdgeInfiniteException the logits hold NaN or +inf, or nothing but one number.
     */
    public fun sample(
        logits: FloatArray,
        answer: List<Int> = emptyList(),
    ): Int {
        val best = checkedBest(logits)
        if (options.temperature == 0.0 && !options.changesLogits) return best
        val changed = adjusted(logits, options, answer)
        if (options.temperature == 0.0) return indexOfLargest(changed)
        val kept = candidates(changed, options)
        val drawn = random.nextDouble() * kept.probabilities.sum()
        var bound = 0.0
        for (index in kept.tokens.indices) {
            bound += kept.probabilities[index]
            if (drawn < bound) return kept.tokens[index]
        }
        return kept.tokens.last()
    }

    private fun checkedBest(logits: FloatArray): Int {
        val best = indexOfLargest(logits)
        if (!logits[best].isFinite()) {
            throw EdgeInfiniteException(
                ErrorCode.BROKEN_MODEL,
                "the model's logits are not finite (${logits[best]} at token $best); the artifact " +
                    "may be damaged: check it with `edgeinfinite verify`",
            )
        }
        if (logits.size > 1 && logits.all { it == logits[best] }) {
            throw EdgeInfiniteException(
                ErrorCode.BROKEN_MODEL,
                "the model gives every token the same logit (${logits[best]}): its weights may be all " +
                    "zero; check the artifact with `edgeinfinite verify`",
            )
        }
        return best
    }
}

/** Tokens that sampling may choose, ascending, and their probabilities, which sum to 1. */
internal class Candidates(
    val tokens: IntArray,
    val probabilities: DoubleArray,
)

/**
 * Temperature, top-k, top-p and min-p, in this order, with the kept sets of transformers' logits
 * warpers.
 *
 * @param logits `[V]`, finite but for -inf; penalties are in them already.
 * @param options with a temperature above 0.
 */
internal fun candidates(
    logits: DoubleArray,
    options: SamplingOptions,
): Candidates {
    // The maximum is subtracted first: a tiny temperature must not overflow.
    val largest = logits[indexOfLargest(logits)]
    val scaled = DoubleArray(logits.size) { (logits[it] - largest) / options.temperature }
    var tokens = IntArray(logits.size) { it }
    if (options.topK in 1 until logits.size) {
        val kth = scaled.sortedArray()[logits.size - options.topK]
        tokens = tokens.filter { scaled[it] >= kth }.toIntArray()
    }
    var probabilities = normalized(DoubleArray(tokens.size) { exp(scaled[tokens[it]]) })
    if (options.topP < 1) {
        val kept = topP(probabilities, options.topP)
        tokens = IntArray(kept.size) { tokens[kept[it]] }
        probabilities = normalized(DoubleArray(kept.size) { probabilities[kept[it]] })
    }
    if (options.minP > 0) {
        val least = options.minP * probabilities.max()
        val kept = probabilities.indices.filter { probabilities[it] >= least }
        tokens = IntArray(kept.size) { tokens[kept[it]] }
        probabilities = normalized(DoubleArray(kept.size) { probabilities[kept[it]] })
    }
    return Candidates(tokens, probabilities)
}

/** Ascending indices of the tokens left after dropping the unlikeliest while they sum to <= 1 - p.
 * */
private fun topP(
    probabilities: DoubleArray,
    p: Double,
): List<Int> {
    val spare = 1 - p
    // Tokens this unlikely are dropped in any case, since together they stay below `spare`. Few
    // remain to sort.
    val likely = probabilities.indices.filter { probabilities[it] > spare / probabilities.size }
    val ascending = likely.sortedBy { probabilities[it] }
    var removed = 1 - likely.sumOf { probabilities[it] }
    var first = 0
    while (first < ascending.lastIndex) {
        removed += probabilities[ascending[first]]
        if (removed > spare) break
        first += 1
    }
    return ascending.drop(first).sorted()
}

private fun normalized(weights: DoubleArray): DoubleArray {
    val sum = weights.sum()
    return DoubleArray(weights.size) { weights[it] / sum }
}

/** The first of the largest. */
private fun indexOfLargest(values: DoubleArray): Int {
    var best = 0
    for (index in values.indices) if (values[index] > values[best]) best = index
    return best
}

/** The first of the largest; NaN counts as the largest. */
private fun indexOfLargest(values: FloatArray): Int {
    var best = 0
    for (index in values.indices) {
        if (values[index].isNaN()) return index
        if (values[index] > values[best]) best = index
    }
    return best
}
