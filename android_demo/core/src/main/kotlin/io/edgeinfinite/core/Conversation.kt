package io.edgeinfinite.core

import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.FlowCollector
import kotlinx.coroutines.flow.emitAll
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.serialization.SerializationException
import java.io.File

/**
 * A chat of any length: documents, questions and answers in a fixed-size state.
 *
 * Made by [Model]. All computing runs on the engine's own thread, one operation at a time. Flows and
 * functions may be used from the main thread. Java has `AsyncConversation`.
 *
 * @property session the text; read it only while nothing runs.
 * @param tokenizer the artifact's, with a chat template.
 * @param dispatcher for all computing; conversations may share it, and don't close it.
 * @param autosave saves running operations; null to save only by [save].
 * @param undoSteps how many of the newest questions and documents [undo] can take back. Each costs
 *   the memory of one more state.
 * @param system the system message, read with the first question or document; null for the template's
 *   own or none. A template without one refuses it then.
 */
public class Conversation
@EngineThreadApi
@JvmOverloads
constructor(
    @property:EngineThreadApi
    public val session: Session,
    private val tokenizer: TextTokenizer,
    private val dispatcher: EngineDispatcher,
    private val autosave: Autosave? = null,
    undoSteps: Int = 0,
    private val system: String? = null,
) {
    private val running = Mutex()
    private val undoRing = UndoRing(undoSteps)
    private val record = ConversationRecord()

    @Volatile
    private var current: Generator? = null

    @Volatile
    private var stopReading = false

    @Volatile
    private var isInterrupting = false

    @Volatile
    private var isClosed = false

    /** What [close] tells the model. */
    @Volatile
    internal var onClosed: () -> Unit = {}

    /**
     * Whether a reading was cut off by [interrupt] or with the process, not stopped by the user, so
     * that [readOn] should be called.
     */
    @Volatile
    public var isInterrupted: Boolean = false
        private set

    /** What was said and read so far; a copy. */
    public val turns: List<Turn> get() = record.turns

    /**
     * Tokens that a stopped reading has left; [readOn] reads them, [ask] and [attach] do first. Those
     * that it hasn't taken from its [TextSource] yet are estimated, see [needsSource].
     */
    public val unreadTokens: Int
        get() = (session.unread.size + (record.pending?.estimate ?: 0)).coerceAtMost(Int.MAX_VALUE.toLong()).toInt()

    /**
     * Whether a stopped reading of a [TextSource] has left some of it, also after [save] and [restore].
     * Then [readOn] needs the source, and [ask] and [attach] refuse until it, [dropUnread] or [undo]
     * was called.
     */
    public val needsSource: Boolean get() = record.pending != null

    /**
     * Reads a long text, for questions to follow.
     *
     * @param name for the history.
     * @param text all of it.
     * @return a [GenerationEvent.Reading] after every chunk; the flow ends when everything is read,
     *   or after [stop] (then [unreadTokens] isn't 0). Cancelling the collector stops within one
     *   chunk.
     */
    public fun attach(
        name: String,
        text: String,
    ): Flow<GenerationEvent.Reading> =
        exclusively {
            begin(name, text)
        }

    /**
     * Reads a text of any length piece by piece: no more of it than one piece is held, also by [save].
     *
     * @param name for the history.
     * @return as for a text; the total is an estimate until the end is near.
     */
    public fun attach(
        name: String,
        source: TextSource,
    ): Flow<GenerationEvent.Reading> =
        exclusively {
            val first = source.pieceAt(0)
            begin(name, first?.text.orEmpty(), source, first?.end ?: 0)
        }

    /** @param end of the text, where [source] goes on. */
    private suspend fun FlowCollector<GenerationEvent.Reading>.begin(
        name: String,
        text: String,
        source: TextSource? = null,
        end: Long = 0,
    ) {
        if (text.isBlank()) throw EdgeInfiniteException(ErrorCode.EMPTY_TEXT, "$name is empty; choose a text")
        val parts = parts(text)
        keepForUndo()
        record.add(Turn(Turn.Kind.DOCUMENT, name))
        var read = 0L
        // The turn's opening is only a few tokens, so it is never interrupted.
        if (parts[0].isNotEmpty()) session.append(parts[0], progress = { read += it })
        record.turnIsOpen = true
        record.pending = source?.let { Pending(0, it.length, 0).after(end, parts[1].size) }
        // The text must be kept here: a saved chat has no path to the file.
        autosave?.request()
        readAll(parts[1], read, source)
    }

    /**
     * Reads the rest of a stopped or interrupted reading, if there is any.
     *
     * @param source what it reads, if [needsSource].
     * @return as for [attach].
     */
    @JvmOverloads
    public fun readOn(source: TextSource? = null): Flow<GenerationEvent.Reading> =
        exclusively(isAllRead = source == null) {
            readAll(IntArray(0), 0, source)
        }

    private fun refusePending() {
        if (record.pending == null) return
        throw EdgeInfiniteException(
            ErrorCode.INVALID_ARGUMENT,
            "a text isn't read to its end; read on with its source, or drop the rest",
        )
    }

    /** The tokens of the next piece of what is pending. */
    private fun nextOf(source: TextSource): IntArray {
        val left = record.pending ?: return IntArray(0)
        val piece = source.pieceAt(left.offset)
        val tokens = if (piece == null || piece.text.isBlank()) IntArray(0) else tokenizer.encodeMore(piece.text)
        record.pending = piece?.let { left.after(it.end, tokens.size) }
        return tokens
    }

    /**
     * @param tokens to be read next.
     * @param source has what is pending; not null if anything is.
     */
    private suspend fun FlowCollector<GenerationEvent.Reading>.readAll(
        tokens: IntArray,
        alreadyRead: Long,
        source: TextSource?,
    ) {
        val job = currentCoroutineContext()[Job]
        val cancelled = { stopReading || job?.isActive == false }
        var read = alreadyRead
        var rest = tokens
        while (true) {
            while (source != null && rest.isEmpty() && session.unread.isEmpty() && record.pending != null) {
                if (cancelled()) {
                    isInterrupted = isInterrupting
                    return
                }
                rest = nextOf(source)
            }
            if (rest.isEmpty() && session.unread.isEmpty()) return
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
                if (cancelled()) {
                    isInterrupted = isInterrupting
                    return
                }
            }
            rest = IntArray(0)
            val total = read + session.unread.size + (record.pending?.estimate ?: 0)
            emit(GenerationEvent.Reading(read, total, SessionFigures.of(session)))
            keep(turns, isReading = !session.unread.isEmpty() || record.pending != null)
        }
    }

    /**
     * Asks, and streams the answer.
     *
     * @param sampler keep one per conversation, so that a seed fixes all of its answers.
     * @param stop the answer ends before the first of these strings, see [Generator].
     * @return see [Generator.events]; computed on the dispatcher.
     */
    @JvmOverloads
    public fun ask(
        question: String,
        sampler: Sampler,
        maxNewTokens: Int = Generator.MAX_NEW_TOKENS,
        stop: List<String> = emptyList(),
    ): Flow<GenerationEvent> =
        exclusively {
            if (question.isBlank()) {
                throw EdgeInfiniteException(
                    ErrorCode.EMPTY_TEXT,
                    "the question is empty; write one",
                )
            }
            val tokens =
                when {
                    record.turnIsOpen -> tokenizer.encodeClosing(question)
                    isFirst() -> tokenizer.encodeChat(first(question))
                    else -> tokenizer.encodeTurn(question)
                }
            lateinit var generator: Generator
            generator =
                Generator(session, tokenizer, tokens, sampler, maxNewTokens, stop) {
                    keep(turns + Turn(Turn.Kind.ASSISTANT, generator.text))
                }
            keepForUndo()
            current = generator
            record.turnIsOpen = false
            record.add(Turn(Turn.Kind.USER, question))
            try {
                generator.events().collect { emit(it) }
            } finally {
                current = null
                record.add(Turn(Turn.Kind.ASSISTANT, generator.text))
            }
        }

    /** Ends what runs after its current chunk or token; from any thread; no error when idle. */
    public fun stop() {
        stopReading = true
        current?.stop()
    }

    /** As [stop], but a reading counts as interrupted, also after [save] and [restore]. */
    public fun interrupt() {
        isInterrupting = true
        stop()
    }

    /** Saves what runs after its current chunk or token; from any thread; nothing when idle. */
    public fun saveSoon() {
        autosave?.request()
    }

    /** How many turns [undo] can take back now; read it only while nothing runs. */
    public val undoable: Int get() = undoRing.count

    /**
     * Takes the newest question and its answer back, or the newest document: session and history are
     * as they were before, bit for bit. Also what a stopped reading has left is as it was.
     *
     * @return what was taken back, oldest first, for another try; empty if nothing can be.
     */
    public suspend fun undo(): List<Turn> =
        alone { undoRing.take()?.let(::goBack).orEmpty() }

    private fun goBack(before: UndoRing.Snapshot): List<Turn> {
        session.goBack(before.session)
        before.session.close()
        record.turnIsOpen = before.turnIsOpen
        record.pending = null // there was none, or the turn would have been refused
        isInterrupted = false
        return record.cutTo(before.turns)
    }

    /** Gives up what a stopped reading has left. */
    public suspend fun dropUnread(): Unit =
        alone {
            isInterrupted = false
            record.pending = null
            session.dropUnread()
        }

    /** Writes the session and the history to one file; an older one is replaced when complete. */
    public suspend fun save(file: File): Unit = alone { write(file, turns, isInterrupted) }

    /** Where the session stands; waits for what runs. */
    public suspend fun figures(): SessionFigures = alone { SessionFigures.of(session) }

    /**
     * Stops what runs and frees the state; the engine stays open. Safe to call twice.
     *
     * It waits for the chunk or token that is being computed, so don't call it inside a collector of
     * this conversation's flows, which would wait for itself.
     */
    public suspend fun close() {
        stop()
        withContext(NonCancellable) {
            running.withLock {
                if (isClosed) return@withContext
                isClosed = true
                withContext(dispatcher) {
                    undoRing.close()
                    session.close()
                }
                onClosed()
            }
        }
    }

    /** Runs [work] on the engine's thread when nothing else runs. */
    private suspend fun <T> alone(work: () -> T): T =
        running.withLock {
            refuseClosed()
            withContext(dispatcher) { work() }
        }

    private fun refuseClosed() {
        if (isClosed) throw EdgeInfiniteException(ErrorCode.CLOSED, "this conversation is closed; open it again")
    }

    private fun keepForUndo() = undoRing.keep(session, turns.size, record.turnIsOpen)

    private fun isFirst() = session.tokensRead == 0L && session.unread.isEmpty()

    private fun first(question: String) =
        listOfNotNull(system?.let { Message(Message.SYSTEM, it) }, Message(Message.USER, question))

    private fun parts(text: String): List<IntArray> {
        if (record.turnIsOpen) return listOf(IntArray(0), tokenizer.encodeMore(text))
        val opening = tokenizer.encodeOpening(text, isFirst(), system)
        val (head, rest) = opening.tokens.withIndex().partition { it.index < opening.openingTokens }
        return listOf(head, rest).map { part -> IntArray(part.size) { part[it].value } }
    }

    /** @param isAllRead whether [block] needs that nothing is left in a source. */
    private fun <T> exclusively(
        isAllRead: Boolean = true,
        block: suspend FlowCollector<T>.() -> Unit,
    ): Flow<T> =
        flow {
            // Before a thread is asked for that may have ended.
            refuseClosed()
            emitAll(onEngine(isAllRead, block))
        }

    private fun <T> onEngine(
        isAllRead: Boolean,
        block: suspend FlowCollector<T>.() -> Unit,
    ): Flow<T> =
        flow {
            running.withLock {
                refuseClosed()
                if (isAllRead) refusePending() // and it stays as interrupted as it is
                isInterrupted = false
                isInterrupting = false
                stopReading = false
                autosave?.begin()
                block()
            }
        }.flowOn(dispatcher)

    private fun keep(
        turns: List<Turn>,
        isReading: Boolean = false,
    ) {
        autosave?.saveIfDue(turns) { write(it, turns, isReading) }
    }

    private fun write(
        file: File,
        turns: List<Turn>,
        isReading: Boolean,
    ) {
        SessionFile.save(session, file, record.toMetadata(turns, isReading))
    }

    public companion object {
        /**
         * Opens a saved conversation.
         *
         * @param file written by [save], or by the Python runtime (then the history has at most the
         *   document that it read).
         * @throws EdgeInfiniteException as [SessionFile.load].
         */
        @EngineThreadApi
        public suspend fun restore(
            engine: Engine,
            tokenizer: TextTokenizer,
            file: File,
            dispatcher: EngineDispatcher,
            autosave: Autosave? = null,
            undoSteps: Int = 0,
            system: String? = null,
        ): Conversation =
            withContext(dispatcher) {
                val (session, extra) = SessionFile.load(engine, file)
                val conversation = Conversation(session, tokenizer, dispatcher, autosave, undoSteps, system)
                try {
                    conversation.isInterrupted = conversation.record.restore(extra, !session.unread.isEmpty())
                } catch (error: SerializationException) {
                    conversation.close()
                    throw EdgeInfiniteException(
                        ErrorCode.SESSION_DAMAGED,
                        "${file.name} holds a damaged history; start a new chat",
                        error,
                    )
                }
                conversation
            }
    }
}
