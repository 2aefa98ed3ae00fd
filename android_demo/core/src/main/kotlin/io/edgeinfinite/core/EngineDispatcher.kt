package io.edgeinfinite.core

import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Runnable
import kotlinx.coroutines.asCoroutineDispatcher
import java.util.concurrent.Executors
import kotlin.coroutines.CoroutineContext

/**
 * The thread that engines compute on: a single one, with a stack as large as a native program's.
 *
 * The runtimes are native code written for such stacks. The threads of `Dispatchers.Default` and
 * `Dispatchers.IO` have the virtual machine's stacks, about 1 MiB on Android, and a native stack
 * overflow ends the process without an exception. So a [Conversation] accepts only this dispatcher.
 *
 * @param name the thread's name.
 */
public class EngineDispatcher
@JvmOverloads
constructor(
    name: String = "engine",
) : CoroutineDispatcher(),
    AutoCloseable {
    /** What is dispatched after [close] is cancelled. */
    private val executor =
        Executors
            .newSingleThreadExecutor { Thread(null, it, name, STACK_BYTES).apply { isDaemon = true } }
            .asCoroutineDispatcher()

    override fun dispatch(
        context: CoroutineContext,
        block: Runnable,
    ): Unit = executor.dispatch(context, block)

    /** Ends the thread when what was dispatched so far is done. */
    override fun close(): Unit = executor.close()

    public companion object {
        /** Stack of the thread. */
        public const val STACK_BYTES: Long = 8L shl 20
    }
}
