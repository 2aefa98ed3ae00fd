package io.edgeinfinite.core

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.FlowCollector
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.isActive
import java.util.concurrent.atomic.AtomicBoolean

/** Why an answer ended; REPETITION: it said one piece over and over (`SamplingOptions.repetitionDetection`). */
public enum class FinishReason { STOP, LENGTH, CANCELLED, REPETITION }

/** What happens while one answer is made. */
public sealed interface GenerationEvent {
    /**
     * A chunk of the prompt was read.
     *
     * @property read tokens of the prompt read so far.
     * @property total tokens of the prompt.
     */
    public data class Reading(
        val read: Long,
        val total: Long,
        val session: SessionFigures,
    ) : GenerationEvent

    /**
     * A token was chosen.
     *
     * @property text the text that it completes, never half a UTF-8 character; often empty.
     */
    public data class Piece(
        val token: Int,
        val text: String,
    ) : GenerationEvent

    /**
     * The answer is complete, or was stopped.
     *
     * @property text the whole answer, without special tokens.
     */
    public data class Finished(
        val reason: FinishReason,
        val text: String,
        val statistics: GenerationStatistics,
    ) : GenerationEvent
}

/**
 * One answer: prefill the prompt, then sample, emit and read one token at a time.
 *
 * At the end, the session has read the prompt and every emitted token, but not the token that
 * stopped the answer: [TextTokenizer.encodeTurn] begins with the template's own end of the answer,
 * whatever ended it. An answer stopped during prefill leaves the rest of the prompt as unread
 * tokens, which the next `append` reads first. One that [maxNewTokens] cut leaves its last token unread:
 * another generator, without tokens, reads it and goes on.
 *
 * When a stop string ends the answer, the session goes back: it hasn't read the tokens of the stop
 * string, nor a token that holds both its first characters and the answer's last ones. For that it
 * keeps a fork while text is held back, and the next token copies the state.
 *
 * @param session the text so far; the prompt is appended to it.
 * @param tokens the prompt or the appended turn; may be empty if there are unread tokens.
 * @param sampler chooses the tokens.
 * @param maxNewTokens longest answer in tokens.
 * @param stop the answer ends before the first of these strings.
 * @param begun the text of an answer that was cut and goes on: what was said counts for penalties, and a
 *   character that the cut has split is completed. Null for an answer of its own.
 * @param shown special tokens whose texts aren't left out of the answer, see `Talk.shown`.
 * @param afterStep called between two chunks or tokens, when the session has read all emitted
 *   tokens; its time counts to no step.
 * @throws EdgeInfiniteException [maxNewTokens] is below 1, a stop string is empty, or the sampler has
 *   a logit bias for a token outside the vocabulary.
 */
@EngineThreadApi
public class Generator
@JvmOverloads
constructor(
    private val session: Session,
    private val tokenizer: TextTokenizer,
    private val tokens: IntArray,
    private val sampler: Sampler,
    private val maxNewTokens: Int = MAX_NEW_TOKENS,
    stop: List<String> = emptyList(),
    begun: String? = null,
    private val shown: Set<Int> = emptySet(),
    private val afterStep: () -> Unit = {},
) {
    private val stopped = AtomicBoolean(false)
    private val answer =
        AnswerText(if (begun == null) tokenizer.stream(begins = true, shown) else streamFromHere(), stop)

    /** A fork from before the first token whose text is held back, and how much it has read. */
    private var fork: Session? = null
    private var forkTokens = 0
    private val tokenIds = ArrayList<Int>()

    /** What penalties count: [tokenIds], after the tokens of an answer that goes on. */
    private val said = ArrayList(begun.orEmpty().let(tokenizer::encodeText).filter { it !in tokenizer.stopIds })
    private val steps = ArrayList<Double>()
    private var promptTokens = 0L
    private var prefillS: Double? = null
    private var ttftS: Double? = null

    init {
        if (maxNewTokens < 1) {
            throw EdgeInfiniteException(
                ErrorCode.INVALID_ARGUMENT,
                "the longest answer is $maxNewTokens tokens; give at least 1",
            )
        }
        sampler.options.checkVocabulary(session.engine.vocabulary)
    }

    /** The answer's text so far; complete once the flow has ended. */
    public val text: String get() = answer.text

    /** Ends the answer after the chunk or token that is being computed; from any thread. */
    public fun stop(): Unit = stopped.set(true)

    /**
     * The events. Collect them once, with one collector at a time per session.
     *
     * The last one is [GenerationEvent.Finished], also after [stop]. Cancelling the collecting
     * coroutine also ends it within one chunk or token, without that event.
     *
     * The flow computes in the collector's context; use `flowOn` to keep it off the main thread.
     * It throws [EdgeInfiniteException] when there is nothing to read or the model gives NaN.
     */
    public fun events(): Flow<GenerationEvent> =
        flow {
            val before = session.tokensRead
            val start = now()
            val logits =
                try {
                    read(start)
                } catch (_: ReadingCancelled) {
                    null
                } finally {
                    promptTokens = session.tokensRead - before
                }
            val reason =
                try {
                    val ended = if (logits == null) FinishReason.CANCELLED else answer(logits, start)
                    if (finishText()) FinishReason.STOP else ended
                } finally {
                    dropFork()
                }
            emit(GenerationEvent.Finished(reason, text, statistics()))
        }

    private suspend fun FlowCollector<GenerationEvent>.read(start: Double): FloatArray {
        val total = (session.unread.size + tokens.size).toLong()
        val context = currentCoroutineContext()
        val cancelled = { stopped.get() || !context.isActive }
        // Chunk by chunk, because a callback of `append` can't suspend to emit progress.
        var read = 0L
        var rest = tokens
        while (true) {
            var pause = false
            try {
                val logits =
                    session.append(
                        rest,
                        progress = {
                            read += it
                            pause = true
                        },
                        cancelled = { pause || cancelled() },
                    )
                prefillS = now() - start
                emit(GenerationEvent.Reading(total, total, SessionFigures.of(session)))
                return logits
            } catch (stop: ReadingCancelled) {
                rest = IntArray(0)
                if (cancelled()) throw stop
                emit(GenerationEvent.Reading(read, total, SessionFigures.of(session)))
                afterStep()
            }
        }
    }

    private suspend fun FlowCollector<GenerationEvent>.answer(
        first: FloatArray,
        promptStart: Double,
    ): FinishReason {
        var token = choose(first)
        ttftS = now() - promptStart
        while (token !in tokenizer.stopIds) {
            tokenIds += token
            said += token
            val piece = answer.push(token)
            if (endsInText()) break
            val start: Double
            val logits: FloatArray
            try {
                emit(GenerationEvent.Piece(token, piece))
            } catch (gone: CancellationException) {
                // It was emitted, so the text must contain it.
                session.append(intArrayOf(token))
                finishText()
                throw gone
            }
            if (sampler.options.repetitionDetection.found(said)) {
                session.append(intArrayOf(token))
                return FinishReason.REPETITION
            }
            if (tokenIds.size == maxNewTokens) {
                session.leaveUnread(token)
                return FinishReason.LENGTH
            }
            start = now()
            logits = session.append(intArrayOf(token))
            if (stopped.get() || !currentCoroutineContext().isActive) return FinishReason.CANCELLED
            token = choose(logits)
            steps += now() - start
            afterStep()
        }
        return FinishReason.STOP
    }

    private fun choose(logits: FloatArray): Int = sampler.sample(logits, said)

    /** Decodes what follows what the session holds, whose last character may lack bytes. */
    private fun streamFromHere(): TextStream {
        val stream = tokenizer.stream(begins = false, shown)
        val newest = session.residual.toIntArray() + session.unread.toIntArray()
        newest.takeLast(CHARACTER).forEach(stream::push)
        return stream
    }

    /** Whether the newest token, not read yet, completes a stop string. */
    private fun endsInText(): Boolean {
        if (!answer.hasStop) return false
        if (answer.stoppedBy != null) {
            forgetStopString()
            return true
        }
        if (answer.wholeTokens == tokenIds.size) {
            dropFork()
        } else if (fork == null) {
            fork = session.fork()
            forkTokens = tokenIds.size - 1
        }
        return false
    }

    /** Completes the text; whether a stop string stands in it. */
    private fun finishText(): Boolean {
        val wasStopped = answer.stoppedBy != null
        answer.finish()
        if (!wasStopped && answer.stoppedBy != null) forgetStopString()
        dropFork()
        return answer.stoppedBy != null
    }

    /** Takes the stop string's tokens back; the session may have read all but the last. */
    private fun forgetStopString() {
        val whole = answer.wholeTokens
        fork?.let {
            session.goBack(it)
            dropFork()
            if (forkTokens < whole) session.append(tokenIds.subList(forkTokens, whole).toIntArray())
        }
        tokenIds.subList(whole, tokenIds.size).clear()
    }

    private fun dropFork() {
        fork?.close()
        fork = null
    }

    private fun statistics(): GenerationStatistics {
        val seconds = prefillS
        return GenerationStatistics(
            tokenIds = tokenIds.toList(),
            promptTokens = promptTokens,
            ttftS = ttftS,
            prefillTokensPerS = if (seconds != null && seconds > 0) promptTokens / seconds else null,
            decodeTokensPerS = if (steps.isEmpty()) null else steps.size / steps.sum(),
            medianTokenS = medianOf(steps),
            slowestTokenS = steps.maxOrNull(),
            session = SessionFigures.of(session),
            engine = session.engine.name,
        )
    }

    private fun now(): Double = System.nanoTime() / 1e9

    public companion object {
        /** The default longest answer in tokens. */
        public const val MAX_NEW_TOKENS: Int = 256

        /** Most tokens, of a byte each, that one character of UTF-8 has. */
        private const val CHARACTER = 4
    }
}
