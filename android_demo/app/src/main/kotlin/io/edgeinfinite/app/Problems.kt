package io.edgeinfinite.app

import android.content.res.Resources
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode

/**
 * What went wrong and what to do about it, for a person. Put into words where it is shown, so in the
 * language that the screen then has.
 *
 * @property text a string of the resources.
 * @property arguments for its places; whatever of them is a file's, anybody may have written.
 * @property detail what `core`, a library or the system says of it, in English; null for nothing.
 */
data class Problem(
    val text: Int,
    val arguments: List<String> = emptyList(),
    val detail: String? = null,
) {
    /** In one line. */
    fun words(resources: Resources): String {
        val line = resources.getString(text, *arguments.map(::printable).toTypedArray())
        return if (detail.isNullOrBlank()) line else "$line (${printable(detail.take(DETAIL))})"
    }

    companion object {
        private const val DETAIL = 400

        /** In the app's words for the error's code, with `core`'s line as detail. */
        fun of(error: EdgeInfiniteException) = Problem(textOf(error.code), detail = error.message)
    }
}

/** Something is wrong that the app itself found out. */
class ProblemException(
    val problem: Problem,
    cause: Throwable? = null,
) : RuntimeException("$problem", cause) {
    constructor(text: Int, vararg arguments: String) : this(Problem(text, arguments.toList()))
}

/** Runs [work]; if it fails with something that a person has to know, [tell] gets that. */
internal inline fun telling(
    tell: (Problem) -> Unit,
    work: () -> Unit,
) {
    try {
        work()
    } catch (error: EdgeInfiniteException) {
        tell(Problem.of(error))
    } catch (error: ProblemException) {
        tell(error.problem)
    } catch (_: OutOfMemoryError) {
        tell(Problem(R.string.problem_out_of_memory))
    }
}

/** `core`'s own escapes for what would disturb a screen. */
private fun printable(text: String): String = EdgeInfiniteException(text).message.orEmpty()

/** The app's text for a kind of error. */
internal fun textOf(code: ErrorCode): Int =
    when (code) {
        ErrorCode.NO_ARTIFACT -> R.string.error_no_artifact
        ErrorCode.ARTIFACT_DAMAGED -> R.string.error_artifact_damaged
        ErrorCode.ARTIFACT_NEWER -> R.string.error_artifact_newer
        ErrorCode.ARTIFACT_OLDER -> R.string.error_artifact_older
        ErrorCode.NAME_TAKEN -> R.string.error_name_taken
        ErrorCode.BAD_ARCHIVE -> R.string.error_bad_archive
        ErrorCode.UNREADABLE_SOURCE -> R.string.error_unreadable_source
        ErrorCode.STORAGE -> R.string.error_storage
        ErrorCode.NO_ENGINE -> R.string.error_no_engine
        ErrorCode.ENGINE_FAILED -> R.string.error_engine_failed
        ErrorCode.BROKEN_MODEL -> R.string.error_broken_model
        ErrorCode.OUT_OF_MEMORY -> R.string.problem_out_of_memory
        ErrorCode.NO_CHAT_TEMPLATE -> R.string.error_no_chat_template
        ErrorCode.CHAT_TEMPLATE -> R.string.error_chat_template
        ErrorCode.SESSION_MISSING -> R.string.error_session_missing
        ErrorCode.SESSION_DAMAGED -> R.string.error_session_damaged
        ErrorCode.SESSION_NEWER -> R.string.error_session_newer
        ErrorCode.SESSION_OLDER -> R.string.error_session_older
        ErrorCode.SESSION_OF_ANOTHER_MODEL -> R.string.error_session_of_another_model
        ErrorCode.EMPTY_TEXT -> R.string.error_empty_text
        ErrorCode.INVALID_ARGUMENT -> R.string.error_invalid_argument
        ErrorCode.CLOSED -> R.string.error_closed
        ErrorCode.OTHER -> R.string.error_other
    }
