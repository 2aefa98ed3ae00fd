package io.edgeinfinite.core

/**
 * What went wrong and what to do about it, in one line that may be shown to a person. Unchecked in
 * Java, as functions of Kotlin declare nothing.
 *
 * Messages quote names from files that anybody could have written, so control characters in them are
 * shown as escapes such as `\u001b`.
 *
 * @property code what kind of error it is, for a text in another language.
 */
public class EdgeInfiniteException
@JvmOverloads
constructor(
    public val code: ErrorCode,
    message: String,
    cause: Throwable? = null,
) : RuntimeException(printable(message), cause) {
    /** An error of the caller's own: [ErrorCode.OTHER]. */
    @JvmOverloads
    public constructor(message: String, cause: Throwable? = null) : this(ErrorCode.OTHER, message, cause)
}

private fun printable(text: String): String =
    if (text.none(::isUnprintable)) {
        text
    } else {
        text.map { if (isUnprintable(it)) "\\u%04x".format(it.code) else it.toString() }.joinToString("")
    }

private fun isUnprintable(sign: Char): Boolean =
    when (sign.category) {
        CharCategory.CONTROL, CharCategory.LINE_SEPARATOR, CharCategory.PARAGRAPH_SEPARATOR -> true
        else -> false
    }
