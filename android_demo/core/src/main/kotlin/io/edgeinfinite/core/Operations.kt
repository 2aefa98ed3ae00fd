package io.edgeinfinite.core

import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.FlowCollector
import kotlinx.coroutines.flow.emitAll
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext

/**
 * What a conversation does: one operation at a time, on the engine's own thread, until it ends, is
 * stopped, or all of them are closed.
 */
internal class Operations(
    private val dispatcher: EngineDispatcher,
) {
    private val running = Mutex()

    @Volatile
    private var isClosed = false

    /** Whether what runs is to end after its current chunk or token. */
    @Volatile
    var isStopping = false
        private set

    /** Whether it is then to go on later. */
    @Volatile
    var isInterrupting = false
        private set

    /** Ends what runs after its current chunk or token; from any thread. */
    fun stop() {
        isStopping = true
    }

    /** As [stop], for what is to go on later. */
    fun interrupt() {
        isInterrupting = true
        stop()
    }

    /** Runs [work] on the engine's thread when nothing else runs. */
    suspend fun <T> alone(work: () -> T): T =
        running.withLock {
            refuseClosed()
            withContext(dispatcher) { work() }
        }

    /** An operation that runs when the flow is collected and nothing else runs. */
    fun <T> flowOf(block: suspend FlowCollector<T>.() -> Unit): Flow<T> =
        flow {
            // Before a thread is asked for that may have ended.
            refuseClosed()
            emitAll(onEngine(block))
        }

    private fun <T> onEngine(block: suspend FlowCollector<T>.() -> Unit): Flow<T> =
        flow {
            running.withLock {
                refuseClosed()
                isStopping = false
                isInterrupting = false
                block()
            }
        }.flowOn(dispatcher)

    /** Waits for what runs, and runs [free] once; nothing runs afterwards. */
    suspend fun close(free: () -> Unit) {
        withContext(NonCancellable) {
            running.withLock {
                if (isClosed) return@withContext
                isClosed = true
                withContext(dispatcher) { free() }
            }
        }
    }

    private fun refuseClosed() {
        if (isClosed) throw EdgeInfiniteException(ErrorCode.CLOSED, "this conversation is closed; open it again")
    }
}
