package io.edgeinfinite.core.async

import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Generator
import io.edgeinfinite.core.Sampler
import io.edgeinfinite.core.SessionFigures
import io.edgeinfinite.core.TextSource
import io.edgeinfinite.core.Turn
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.future.future
import kotlinx.coroutines.launch
import java.io.File
import java.util.concurrent.CompletableFuture

/**
 * A [Conversation] for callers without coroutines: its flows have a listener, what suspends gives a
 * future. Made by [AsyncModel].
 *
 * @property conversation the same, for Kotlin.
 */
public class AsyncConversation internal constructor(
    public val conversation: Conversation,
    private val scope: CoroutineScope,
) {
    /** What was said and read so far; a copy. */
    public val turns: List<Turn> get() = conversation.turns

    /** Reads a long text; see [Conversation.attach]. End it with [stop]. */
    public fun attach(
        name: String,
        text: String,
        listener: EventListener<in GenerationEvent.Reading>,
    ): Unit = listen(conversation.attach(name, text), listener)

    /** Reads a text of any length piece by piece; see [Conversation.attach]. End it with [stop]. */
    public fun attach(
        name: String,
        source: TextSource,
        listener: EventListener<in GenerationEvent.Reading>,
    ): Unit = listen(conversation.attach(name, source), listener)

    /** Reads what a stopped reading has left; see [Conversation.readOn]. */
    @JvmOverloads
    public fun readOn(
        listener: EventListener<in GenerationEvent.Reading>,
        source: TextSource? = null,
    ): Unit = listen(conversation.readOn(source), listener)

    /** Asks; see [Conversation.ask]. End the answer with [stop]. */
    @JvmOverloads
    public fun ask(
        question: String,
        sampler: Sampler,
        listener: EventListener<in GenerationEvent>,
        maxNewTokens: Int = Generator.MAX_NEW_TOKENS,
        stop: List<String> = emptyList(),
    ): Unit = listen(conversation.ask(question, sampler, maxNewTokens, stop), listener)

    /** The same, sampled as the model's authors recommend. */
    public fun ask(
        question: String,
        listener: EventListener<in GenerationEvent>,
    ): Unit = listen(conversation.ask(question), listener)

    /** Goes on with an answer that was cut; see [Conversation.goOn]. End it with [stop]. */
    @JvmOverloads
    public fun goOn(
        listener: EventListener<in GenerationEvent>,
        sampler: Sampler? = null,
        maxNewTokens: Int = Generator.MAX_NEW_TOKENS,
        stop: List<String> = emptyList(),
    ): Unit = listen(conversation.goOn(sampler, maxNewTokens, stop), listener)

    /** Ends what runs after its current chunk or token; from any thread; no error when idle. */
    public fun stop(): Unit = conversation.stop()

    /** See [Conversation.undo]. */
    public fun undo(): CompletableFuture<List<Turn>> = scope.future { conversation.undo() }

    /** See [Conversation.save]. */
    public fun save(file: File): CompletableFuture<Void?> = scope.future { finished(conversation.save(file)) }

    /** See [Conversation.figures]. */
    public fun figures(): CompletableFuture<SessionFigures> = scope.future { conversation.figures() }

    /** See [Conversation.close]. */
    public fun close(): CompletableFuture<Void?> = scope.future { finished(conversation.close()) }

    private fun <E> listen(
        events: Flow<E>,
        listener: EventListener<in E>,
    ) {
        scope.launch {
            try {
                events.collect(listener::onEvent)
            } catch (error: CancellationException) {
                throw error
            } catch (error: Throwable) {
                listener.onError(error)
                return@launch
            }
            listener.onEnd()
        }
    }
}
