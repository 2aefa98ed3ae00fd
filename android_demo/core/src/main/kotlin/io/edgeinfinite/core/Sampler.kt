package io.edgeinfinite.core

import kotlinx.serialization.Serializable
import java.util.Random
import kotlin.math.exp

/**
 * How to sample; the default is greedy.
 *
 * @property temperature divides the logits; 0 takes the most likely token and ignores the rest.
 * @property topK sample among the k most likely tokens (and those equal to the k-th); 0 means all.
 * @property topP sample among the fewest tokens whose probabilities sum to at least p; 1 means all.
 * @property seed the same seed gives the same choices; null draws a new one.
 * @throws EdgeInfiniteException a value is out of range.
 */
@Serializable
data class SamplingOptions(
    val temperature: Double = 0.0,
    val topK: Int = 0,
    val topP: Double = 1.0,
    val seed: Long? = null,
) {
    init {
        if (!(temperature.isFinite() && temperature >= 0)) {
            refuse("temperature is $temperature; give a number of at least 0 (0 is greedy)")
        }
        if (topK < 0) refuse("top-k is $topK; give a whole number of at least 0 (0 keeps all tokens)")
        if (!(topP > 0 && topP <= 1)) {
            refuse("top-p is $topP; give a number above 0 and at most 1 (1 keeps all tokens)")
        }
        if (seed != null && seed < 0) refuse("seed is $seed; give a whole number of at least 0")
    }

    private fun refuse(message: String): Nothing = throw EdgeInfiniteException(message)
}

/**
 * Draws tokens; use one per conversation, so that a seed fixes all of its answers.
 *
 * The kept tokens and their probabilities equal the Python runtime's, but the random numbers are
 * Java's: a seed gives the same answer on every device, but another one than Python.
 */
class Sampler(
    private val options: SamplingOptions,
) {
    private val random = options.seed?.let(::Random) ?: Random()

    /**
     * The next token.
     *
     * @param logits `[V]`.
     * @throws EdgeInfiniteException the logits hold NaN or +inf, or nothing but one number.
     */
    fun sample(logits: FloatArray): Int {
        val best = indexOfLargest(logits)
        if (!logits[best].isFinite()) {
            throw EdgeInfiniteException(
                "the model's logits are not finite (${logits[best]} at token $best); the artifact " +
                    "may be damaged: check it with `edgeinfinite verify`",
            )
        }
        if (logits.size > 1 && logits.all { it == logits[best] }) {
            throw EdgeInfiniteException(
                "the model gives every token the same logit (${logits[best]}): its weights may be all " +
                    "zero; check the artifact with `edgeinfinite verify`",
            )
        }
        if (options.temperature == 0.0) return best
        val kept = candidates(logits, options)
        val drawn = random.nextDouble() * kept.probabilities.sum()
        var bound = 0.0
        for (index in kept.tokens.indices) {
            bound += kept.probabilities[index]
            if (drawn < bound) return kept.tokens[index]
        }
        return kept.tokens.last()
    }
}

/** Tokens that sampling may choose, ascending, and their probabilities, which sum to 1. */
internal class Candidates(
    val tokens: IntArray,
    val probabilities: DoubleArray,
)

/**
 * Temperature, then top-k, then top-p, with the kept sets of transformers' logits warpers.
 *
 * @param logits `[V]`, finite but for -inf.
 * @param options with a temperature above 0.
 */
internal fun candidates(
    logits: FloatArray,
    options: SamplingOptions,
): Candidates {
    // The maximum is subtracted first: a tiny temperature must not overflow.
    val largest = logits[indexOfLargest(logits)].toDouble()
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

/** The first of the largest; NaN counts as the largest. */
private fun indexOfLargest(values: FloatArray): Int {
    var best = 0
    for (index in values.indices) {
        if (values[index].isNaN()) return index
        if (values[index] > values[best]) best = index
    }
    return best
}
