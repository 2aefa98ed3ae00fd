package io.edgeinfinite.core.async

/**
 * Hears what an operation does, for callers without coroutines. All calls come on the executor that
 * the [AsyncModel] was opened with, one after the other.
 *
 * @param E the events, such as `GenerationEvent`.
 */
public interface EventListener<E> {
    /** Something happened. */
    public fun onEvent(event: E)

    /** The operation has ended: it is complete, or was stopped. Nothing follows. */
    public fun onEnd() {}

    /**
     * The operation failed. Nothing follows.
     *
     * @param error an `EdgeInfiniteException` with a line for a person; anything else is a defect.
     */
    public fun onError(error: Throwable)
}
