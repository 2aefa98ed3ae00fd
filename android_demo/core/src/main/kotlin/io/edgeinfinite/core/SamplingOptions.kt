package io.edgeinfinite.core

import kotlinx.serialization.Serializable

/**
 * How to sample; the default is greedy. The same as Python's `SamplingOptions` (docs/sampling.md).
 *
 * Bias and penalties change the logits first, and count for greedy answers, too.
 *
 * @property temperature divides the logits; 0 takes the most likely token and ignores top-k, top-p
 *   and min-p.
 * @property topK sample among the k most likely tokens (and those equal to the k-th); 0 means all.
 * @property topP sample among the fewest tokens whose probabilities sum to at least p; 1 means all.
 * @property minP sample among the tokens at least p times as likely as the likeliest; 0 means all.
 * @property repetitionPenalty divides the positive logits of tokens that the answer has, and
 *   multiplies the negative ones; 1 means none.
 * @property presencePenalty taken from the logit of every token that the answer has.
 * @property frequencyPenalty taken from a token's logit once for each time that the answer has it.
 * @property logitBias added to the logits, by token id.
 * @property repetitionDetection ends an answer that says one piece over and over.
 * @property seed the same seed gives the same choices; null draws a new one.
 * @throws EdgeInfiniteException a value is out of range.
 */
@Serializable
public data class SamplingOptions
@JvmOverloads
constructor(
    val temperature: Double = 0.0,
    val topK: Int = 0,
    val topP: Double = 1.0,
    val minP: Double = 0.0,
    val repetitionPenalty: Double = 1.0,
    val presencePenalty: Double = 0.0,
    val frequencyPenalty: Double = 0.0,
    val logitBias: Map<Int, Double> = emptyMap(),
    val seed: Long? = null,
    val repetitionDetection: RepetitionDetection = RepetitionDetection.OFF,
) {
    init {
        if (!(temperature.isFinite() && temperature >= 0)) {
            refuse("temperature is $temperature; give a number of at least 0 (0 is greedy)")
        }
        if (topK < 0) refuse("top-k is $topK; give a whole number of at least 0 (0 keeps all tokens)")
        if (!(topP > 0 && topP <= 1)) {
            refuse("top-p is $topP; give a number above 0 and at most 1 (1 keeps all tokens)")
        }
        if (!(minP in 0.0..1.0)) refuse("min-p is $minP; give a number from 0 to 1 (0 keeps all tokens)")
        if (!(repetitionPenalty.isFinite() && repetitionPenalty > 0)) {
            refuse("the repetition penalty is $repetitionPenalty; give a number above 0 (1 is none)")
        }
        if (!presencePenalty.isFinite()) {
            refuse("the presence penalty is $presencePenalty; give a number (0 is none)")
        }
        if (!frequencyPenalty.isFinite()) {
            refuse("the frequency penalty is $frequencyPenalty; give a number (0 is none)")
        }
        logitBias.entries.find { (token, bias) -> token < 0 || !bias.isFinite() }?.let { (token, bias) ->
            refuse(
                "the logit bias of token $token is $bias; give token ids of at least 0 and finite " +
                    "numbers, such as -100 to forbid a token",
            )
        }
        if (seed != null && seed < 0) refuse("seed is $seed; give a whole number of at least 0")
    }

    /** Whether there is a bias or a penalty. */
    internal val changesLogits: Boolean
        get() = logitBias.isNotEmpty() || repetitionPenalty != 1.0 || presencePenalty != 0.0 || frequencyPenalty != 0.0

    /**
     * Refuses a bias of a token that the model doesn't have.
     *
     * @throws EdgeInfiniteException [logitBias] has a token id of [vocabulary] or more.
     */
    public fun checkVocabulary(vocabulary: Int) {
        val token = logitBias.keys.maxOrNull() ?: return
        if (token >= vocabulary) {
            refuse(
                "the logit bias has token $token, outside the vocabulary of $vocabulary; give ids of " +
                    "the artifact's own tokenizer",
            )
        }
    }

    private fun refuse(message: String): Nothing = throw EdgeInfiniteException(ErrorCode.INVALID_ARGUMENT, message)
}
