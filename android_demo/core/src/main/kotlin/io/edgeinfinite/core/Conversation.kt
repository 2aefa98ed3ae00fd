package io.edgeinfinite.core

import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.FlowCollector
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
 * @property sampling of answers that are given no sampler. [Model] gives what the checkpoint recommends;
 *   the default is greedy.
 */
public class Conversation
@EngineThreadApi
@JvmOverloads
constructor(
    @property:EngineThreadApi
    public val session: Session,
    private val tokenizer: TextTokenizer,
    dispatcher: EngineDispatcher,
    private val autosave: Autosave? = null,
    undoSteps: Int = 0,
    system: String? = null,
    public val sampling: SamplingOptions = SamplingOptions(),
) {
    private val operations = Operations(dispatcher)
    private val undoRing = UndoRing(undoSteps)
    private val record = ConversationRecord()
    private val tokens = TurnTokens(session, tokenizer, record, system)
    private val reading = TextReading(session, tokenizer, record, operations) { keep(turns, isReading = it) }

    /** Writes the answer that runs. */
    @Volatile
    private var current: Generator? = null

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
    public val unreadTokens: Int get() = if (canGoOn) 0 else reading.left

    /**
     * Whether a stopped reading of a [TextSource] has left some of it, also after [save] and [restore].
     * Then [readOn] needs the source, and [ask] and [attach] refuse until it, [dropUnread] or [undo]
     * was called.
     */
    public val needsSource: Boolean get() = record.pending != null

    /**
     * Whether the newest answer was cut because it was as long as it might be, also after [save] and
     * [restore], so that [goOn] continues it. Read it only while nothing runs.
     */
    public val canGoOn: Boolean
        get() = !session.unread.isEmpty() && turns.lastOrNull().let { it?.kind == Turn.Kind.ASSISTANT && it.text != "" }

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
        val (opening, rest) = tokens.ofDocument(text)
        keepForUndo()
        record.add(Turn(Turn.Kind.DOCUMENT, name))
        var read = 0L
        // The turn's opening is only a few tokens, so it is never interrupted.
        if (opening.isNotEmpty()) session.append(opening, progress = { read += it })
        record.turnIsOpen = true
        record.pending = source?.let { Pending(0, it.length, 0).after(end, rest.size) }
        // The text must be kept here: a saved chat has no path to the file.
        autosave?.request()
        readAll(rest, read, source)
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
            if (!canGoOn) readAll(IntArray(0), 0, source)
        }

    private suspend fun FlowCollector<GenerationEvent.Reading>.readAll(
        tokens: IntArray,
        alreadyRead: Long,
        source: TextSource?,
    ) {
        if (reading.read(tokens, alreadyRead, source, this)) isInterrupted = operations.isInterrupting
    }

    /**
     * Asks, and streams the answer.
     *
     * @param sampler keep one per conversation, so that a seed fixes all of its answers; null makes one of
     *   [sampling].
     * @param stop the answer ends before the first of these strings, see [Generator].
     * @return see [Generator.events]; computed on the dispatcher.
     */
    @JvmOverloads
    public fun ask(
        question: String,
        sampler: Sampler? = null,
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
            val generator = generator(tokens.ofQuestion(question), sampler, maxNewTokens, stop)
            keepForUndo()
            record.turnIsOpen = false
            record.add(Turn(Turn.Kind.USER, question))
            answer(generator)
        }

    /**
     * Goes on with the newest answer, in its own words, where [canGoOn].
     *
     * @param maxNewTokens how many tokens longer it may become.
     * @param stop as for [ask], in what is added.
     * @return as for [ask]; the events have only what is added. In [turns] it is one answer, and [undo]
     *   takes all of it back.
     * @throws EdgeInfiniteException the answer ended by itself.
     */
    @JvmOverloads
    public fun goOn(
        sampler: Sampler? = null,
        maxNewTokens: Int = Generator.MAX_NEW_TOKENS,
        stop: List<String> = emptyList(),
    ): Flow<GenerationEvent> =
        exclusively {
            if (!canGoOn) {
                throw EdgeInfiniteException(
                    ErrorCode.INVALID_ARGUMENT,
                    "there is no answer that was cut; ask a question",
                )
            }
            val begun = turns.last().text
            val generator = generator(IntArray(0), sampler, maxNewTokens, stop, begun)
            record.cutTo(turns.size - 1)
            answer(generator, begun)
        }

    private fun generator(
        tokens: IntArray,
        sampler: Sampler?,
        maxNewTokens: Int,
        stop: List<String>,
        begun: String? = null,
    ): Generator {
        lateinit var generator: Generator
        generator =
            Generator(session, tokenizer, tokens, sampler ?: Sampler(sampling), maxNewTokens, stop, begun) {
                keep(turns + Turn(Turn.Kind.ASSISTANT, begun.orEmpty() + generator.text))
            }
        return generator
    }

    private suspend fun FlowCollector<GenerationEvent>.answer(
        generator: Generator,
        begun: String = "",
    ) {
        current = generator
        try {
            generator.events().collect { emit(it) }
        } finally {
            current = null
            record.add(Turn(Turn.Kind.ASSISTANT, begun + generator.text))
        }
    }

    /** Ends what runs after its current chunk or token; from any thread; no error when idle. */
    public fun stop() {
        operations.stop()
        current?.stop()
    }

    /** As [stop], but a reading counts as interrupted, also after [save] and [restore]. */
    public fun interrupt() {
        operations.interrupt()
        current?.stop()
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
        operations.alone { undoRing.take()?.let(::goBack).orEmpty() }

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
        operations.alone {
            isInterrupted = false
            record.pending = null
            if (!canGoOn) session.dropUnread()
        }

    /** Writes the session and the history to one file; an older one is replaced when complete. */
    public suspend fun save(file: File): Unit = operations.alone { write(file, turns, isInterrupted) }

    /** Where the session stands; waits for what runs. */
    public suspend fun figures(): SessionFigures = operations.alone { SessionFigures.of(session) }

    /**
     * Stops what runs and frees the state; the engine stays open. Safe to call twice.
     *
     * It waits for the chunk or token that is being computed, so don't call it inside a collector of
     * this conversation's flows, which would wait for itself.
     */
    public suspend fun close() {
        stop()
        operations.close {
            undoRing.close()
            session.close()
            onClosed()
        }
    }

    private fun keepForUndo() = undoRing.keep(session, turns.size, record.turnIsOpen)

    /** @param isAllRead whether [block] needs that nothing is left in a source. */
    private fun <T> exclusively(
        isAllRead: Boolean = true,
        block: suspend FlowCollector<T>.() -> Unit,
    ): Flow<T> =
        operations.flowOf {
            if (isAllRead) reading.refusePending() // and it stays as interrupted as it is
            isInterrupted = false
            autosave?.begin()
            block()
        }

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
            sampling: SamplingOptions = SamplingOptions(),
        ): Conversation =
            withContext(dispatcher) {
                val (session, extra) = SessionFile.load(engine, file)
                val conversation = Conversation(session, tokenizer, dispatcher, autosave, undoSteps, system, sampling)
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
