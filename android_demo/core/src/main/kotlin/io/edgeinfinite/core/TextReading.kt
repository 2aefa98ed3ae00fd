package io.edgeinfinite.core

import kotlinx.coroutines.Job
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.flow.FlowCollector

/**
 * Reads long texts into a session, chunk by chunk, and those that come from a source piece by piece.
 *
 * @param record holds what is left in a source.
 * @param operations say when to stop.
 * @param afterChunk called between two chunks with whether anything is left.
 */
internal class TextReading(
    private val session: Session,
    private val tokenizer: TextTokenizer,
    private val record: ConversationRecord,
    private val operations: Operations,
    private val afterChunk: (isMoreLeft: Boolean) -> Unit,
) {
    /** Tokens that a stopped reading has left; those that still stand in a source are estimated. */
    val left: Int
        get() = (session.unread.size + (record.pending?.estimate ?: 0)).coerceAtMost(Int.MAX_VALUE.toLong()).toInt()

    /** @throws EdgeInfiniteException a text isn't read to its end. */
    fun refusePending() {
        if (record.pending == null) return
        throw EdgeInfiniteException(
            ErrorCode.INVALID_ARGUMENT,
            "a text isn't read to its end; read on with its source, or drop the rest",
        )
    }

    /**
     * Reads until nothing is left.
     *
     * @param tokens to be read next.
     * @param alreadyRead tokens of the same text.
     * @param source has what is pending; not null if anything is.
     * @return whether it was stopped before.
     */
    suspend fun read(
        tokens: IntArray,
        alreadyRead: Long,
        source: TextSource?,
        events: FlowCollector<GenerationEvent.Reading>,
    ): Boolean {
        val job = currentCoroutineContext()[Job]
        val cancelled = { operations.isStopping || job?.isActive == false }
        var read = alreadyRead
        var rest = tokens
        while (true) {
            while (source != null && rest.isEmpty() && session.unread.isEmpty() && record.pending != null) {
                if (cancelled()) return true
                rest = nextOf(source)
            }
            if (rest.isEmpty() && session.unread.isEmpty()) return false
            var pause = false
            try {
                session.append(
                    rest,
                    progress = {
                        read += it
                        pause = true
                    },
                    cancelled = { pause || cancelled() },
                )
            } catch (_: ReadingCancelled) {
                if (cancelled()) return true
            }
            rest = IntArray(0)
            val total = read + session.unread.size + (record.pending?.estimate ?: 0)
            events.emit(GenerationEvent.Reading(read, total, SessionFigures.of(session)))
            afterChunk(!session.unread.isEmpty() || record.pending != null)
        }
    }

    /** The tokens of the next piece of what is pending. */
    private fun nextOf(source: TextSource): IntArray {
        val left = record.pending ?: return IntArray(0)
        val piece = source.pieceAt(left.offset)
        val tokens = if (piece == null || piece.text.isBlank()) IntArray(0) else tokenizer.encodeMore(piece.text)
        record.pending = piece?.let { left.after(it.end, tokens.size) }
        return tokens
    }
}
