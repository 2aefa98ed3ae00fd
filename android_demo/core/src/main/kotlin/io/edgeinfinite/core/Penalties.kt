package io.edgeinfinite.core

/**
 * The logits that a token is chosen from: bias, then penalties. As Python's `penalties.py`, in the
 * order of transformers' logits processors.
 *
 * The repetition penalty (CTRL, arXiv 1909.05858) and OpenAI's presence and frequency penalties count
 * the answer alone: a document's words are what its questions ask for.
 *
 * @param logits `[V]`, the model's.
 * @param answer the answer's tokens so far.
 * @return `[V]`, a new array.
 */
internal fun adjusted(
    logits: FloatArray,
    options: SamplingOptions,
    answer: List<Int>,
): DoubleArray {
    val changed = DoubleArray(logits.size) { logits[it].toDouble() }
    for ((token, bias) in options.logitBias) changed[token] += bias
    val penalty = options.repetitionPenalty
    if (penalty != 1.0) {
        for (token in answer.toSet()) {
            changed[token] = changed[token].let { if (it < 0) it * penalty else minOf(it / penalty, LARGEST) }
        }
    }
    if (options.presencePenalty != 0.0 || options.frequencyPenalty != 0.0) {
        for ((token, times) in answer.groupingBy { it }.eachCount()) {
            changed[token] -= options.presencePenalty + options.frequencyPenalty * times
        }
    }
    return changed
}

/** A logit that no other one reaches; infinity would make every probability none. */
private const val LARGEST = 1e30
