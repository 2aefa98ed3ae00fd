package io.edgeinfinite.core

/** What went wrong and what to do about it, in one line that may be shown to a person. */
class EdgeInfiniteException(
    message: String,
    cause: Throwable? = null,
) : Exception(message, cause)
