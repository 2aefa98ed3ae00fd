package io.edgeinfinite.core

/** Work was stopped between two steps; the state is valid. */
public class ReadingCancelled : RuntimeException("cancelled")

/**
 * One text, read with a fixed-size state (Algorithm 1 of EdgeInfinite, arXiv 2503.22196).
 *
 * While the text fits the cache, attention is exact. After that, the cache holds the sinks and the
 * newest tokens (and recall slots under `carry`, see [Policy]), and with a gate the memory holds
 * the rest. The state depends only on the tokens, not on how they were split into prompts, turns or
 * single tokens.
 *
 * Not thread-safe. Letters: S sinks, N segment, W window, C capacity, T tokens of one call,
 * V vocabulary.
 *
 * @property engine computes the graphs; may be shared with other sessions.
 */
@EngineThreadApi
public class Session private constructor(
    public val engine: Engine,
    private val chunkLength: Int,
    state: State,
) : AutoCloseable {
    /**
     * A session that has read nothing.
     *
     * @param engine computes the graphs.
     * @param chunkLength most tokens of one prefill call, null for the engine's choice. It changes
     *   speed and memory, never the result: chunks of one segment read the same memory.
     * @throws EdgeInfiniteException chunkLength is below 1, or there is no memory for the state.
     */
    @JvmOverloads
    public constructor(engine: Engine, chunkLength: Int? = null) :
        this(engine, atLeastOne(chunkLength ?: engine.chunkLength), engine.newState())

    private val geometry = engine.geometry
    private val policy = Policy.named(geometry.policy)

    /** The tensors, see [State]; shared with forks until one of them reads. */
    public var state: State = state
        private set

    init {
        state.sharers += this
    }

    /** Tokens of the text in the cache or in the memory. */
    public var tokensRead: Long = 0
        internal set

    /** How many times N tokens have left the residual. */
    public var compressions: Long = 0
        internal set

    /** Tokens accepted but not read; empty unless reading was cancelled or an answer was cut. */
    public val unread: TokenQueue = TokenQueue()

    /** Ids of the tokens in the cache after the sinks, oldest first. */
    public val residual: TokenQueue = TokenQueue()

    /** Slots in use in the layer with most: sinks, recall slots and residual, at most C. */
    public val cached: Int get() = state.lengthOf(geometry.longestLayer)

    /** Recall slots in use in the layer with the most. */
    public val recalled: Int get() = cached - minOf(cached, geometry.sinkLength) - residual.size

    /** Bytes of the state, constant. */
    public val stateBytes: Long get() = state.bytes

    /**
     * Reads the next tokens of the text: a prompt, an appended turn, or the one just sampled.
     *
     * @param tokens token ids; may be empty to resume a cancelled reading.
     * @param progress called with the number of tokens newly read, after every chunk.
     * @param cancelled asked before every chunk.
     * @return logits `[V]` of the last token.
     * @throws EdgeInfiniteException no token to read, or one outside the vocabulary (then nothing is
     *   read).
     * @throws ReadingCancelled the state is valid; `append(IntArray(0))` resumes, [dropUnread]
     *   drops the rest.
     */
    public fun append(
        tokens: IntArray,
        progress: (Int) -> Unit = {},
        cancelled: () -> Boolean = { false },
    ): FloatArray {
        tokens.find { it < 0 || it >= engine.vocabulary }?.let {
            throw EdgeInfiniteException(
                ErrorCode.INVALID_ARGUMENT,
                "token $it is outside the vocabulary of ${engine.vocabulary}; " +
                    "use the artifact's own tokenizer",
            )
        }
        if (tokens.isEmpty() && unread.isEmpty()) {
            throw EdgeInfiniteException(ErrorCode.INVALID_ARGUMENT, "there is no token to read; give at least one")
        }
        partFromForks()
        unread.addLast(tokens)
        var logits: FloatArray? = null
        while (!unread.isEmpty()) {
            val before = tokensRead
            // While window tokens are read again, the text has a gap, so don't stop before it is
            // filled.
            if (!rereading && cancelled()) throw ReadingCancelled()
            if (policy.isDue(this)) {
                compress()
                continue
            }
            logits = read(minOf(chunkLength, policy.room(this), unread.size))
            if (tokensRead > before) progress((tokensRead - before).toInt())
        }
        return checkNotNull(logits) // the loop ends by reading, never by compressing
    }

    /** Drops the tokens that a cancelled [append] has not read; the text ends at [tokensRead]. */
    public fun dropUnread(): Unit = unread.clear()

    /** Accepts the token that ends a cut answer; the next [append] reads it first. */
    internal fun leaveUnread(token: Int): Unit = unread.addLast(intArrayOf(token))

    /**
     * A session that goes on from here by itself, and leaves this one as it is. To be closed.
     *
     * Both share the state's memory until one of them reads a token; only then is it copied. What
     * was evicted can't be brought back, so a fork is also the only way to undo: fork before a turn,
     * and [goBack] to the fork.
     */
    public fun fork(): Session = Session(engine, chunkLength, state).also { it.copyCounters(this) }

    /**
     * Continues from where [fork] stands, in place; what was read since is forgotten.
     *
     * @param fork made by [fork], of this session or of one like it. It stays as it is.
     */
    public fun goBack(fork: Session) {
        if (fork === this) return
        leaveState()
        state = fork.state
        state.sharers += this
        copyCounters(fork)
    }

    /** Frees the engine's resources for the state, unless a fork has it, too. Safe to call twice. */
    override fun close(): Unit = leaveState()

    private fun leaveState() {
        state.sharers -= this
        if (state.sharers.isEmpty()) state.close()
    }

    private fun copyCounters(other: Session) {
        tokensRead = other.tokensRead
        compressions = other.compressions
        unread.clear()
        unread.addLast(other.unread.toIntArray())
        residual.clear()
        residual.addLast(other.residual.toIntArray())
    }

    /**
     * Makes this session the only one that has its state; before it is written to.
     *
     * The session keeps the buffers, which the engine has bound; the others get one copy together.
     */
    private fun partFromForks() {
        val others = state.sharers - this
        if (others.isEmpty()) return
        val copy = state.copy()
        state.sharers -= others
        copy.sharers += others
        others.forEach { it.state = copy }
    }

    /** Tokens of the text before the next unread one; below [tokensRead] while re-reading. */
    private val position: Long get() =
        compressions * geometry.segmentLength + minOf(cached, geometry.sinkLength) + residual.size

    private val rereading: Boolean get() = position < tokensRead

    private fun compress() {
        policy.compress(this)
        compressions += 1
        if (engine.readsMemory) state.hasMemory = true
    }

    private fun read(count: Int): FloatArray {
        makeRoom(this)
        val chunk = unread.first(count)
        val logits =
            if (count == 1) engine.decodeStep(chunk[0], state) else engine.prefillSegment(chunk, state)
        // Changed last, so that an engine that fails doesn't change the session.
        val sinksMissing = maxOf(0, geometry.sinkLength - cached)
        residual.addLast(chunk.copyOfRange(minOf(sinksMissing, count), count))
        unread.removeFirst(count)
        state.setLengths { state.lengthOf(it) + count }
        tokensRead = maxOf(tokensRead, position)
        return logits
    }

    private companion object {
        fun atLeastOne(chunkLength: Int): Int {
            if (chunkLength <
                1
            ) {
                throw EdgeInfiniteException(
                    ErrorCode.INVALID_ARGUMENT,
                    "chunk length is $chunkLength; give at least 1",
                )
            }
            return chunkLength
        }
    }
}
