package io.edgeinfinite.core

import kotlin.math.pow

/**
 * The logits that a token is chosen from: bias, then penalties. As Python's `penalties.py`, in the
 * order of transformers' logits processors.
 *
 * The repetition penalty (CTRL, arXiv 1909.05858) counts the answer and the text before it, as far
 * as its token ids are at hand: [Session.residual]. Sinks and recalled tokens don't count. Presence
 * and frequency penalties are those of OpenAI's API, DRY is llama.cpp's; they count the answer alone.
 *
 * @param logits `[V]`, the model's.
 * @param answer the answer's tokens so far.
 * @param residual the newest tokens of the text; may hold the answer's, too.
 * @return `[V]`, a new array.
 */
internal fun adjusted(
    logits: FloatArray,
    options: SamplingOptions,
    answer: List<Int>,
    residual: IntArray,
): DoubleArray {
    val changed = DoubleArray(logits.size) { logits[it].toDouble() }
    for ((token, bias) in options.logitBias) changed[token] += bias
    val penalty = options.repetitionPenalty
    if (penalty != 1.0) {
        for (token in answer.toSet() + residual.toSet()) {
            changed[token] = changed[token].let { if (it < 0) it * penalty else it / penalty }
        }
    }
    if (options.presencePenalty != 0.0 || options.frequencyPenalty != 0.0) {
        for ((token, times) in answer.groupingBy { it }.eachCount()) {
            changed[token] -= options.presencePenalty + options.frequencyPenalty * times
        }
    }
    if (options.dryMultiplier != 0.0) {
        for ((token, length) in repeated(answer)) {
            changed[token] -= options.dryMultiplier * DRY_BASE.pow(length - DRY_ALLOWED)
        }
    }
    return changed
}
