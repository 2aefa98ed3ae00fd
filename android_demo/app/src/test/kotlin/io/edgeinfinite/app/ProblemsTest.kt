package io.edgeinfinite.app

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment

/** Errors are told in the language of the screen. */
@RunWith(RobolectricTestRunner::class)
class ProblemsTest {
    @Test
    fun `every code of core has a text of its own in both languages`() {
        val english = texts("en")
        val german = texts("de")
        assertEquals(ErrorCode.entries.size, english.values.toSet().size)
        assertEquals(ErrorCode.entries.size, german.values.toSet().size)
        for (code in ErrorCode.entries) {
            assertTrue("$code", english.getValue(code).length > 10)
            assertNotEquals("$code", english[code], german[code])
        }
    }

    private fun texts(language: String): Map<ErrorCode, String> {
        RuntimeEnvironment.setQualifiers(language)
        return ErrorCode.entries.associateWith { app.getString(textOf(it)) }
    }

    @Test
    fun `core's line follows the app's words, in one line`() {
        val error = EdgeInfiniteException(ErrorCode.SESSION_DAMAGED, "x\n.safetensors is cut short")
        assertEquals(
            "The saved state is damaged: start a new chat. (x\\u000a.safetensors is cut short)",
            Problem.of(error).words(app.resources),
        )
        RuntimeEnvironment.setQualifiers("de")
        assertTrue(Problem.of(error).words(app.resources).startsWith("Der gesicherte Zustand ist beschädigt"))
    }

    @Test
    fun `a name that anybody could have written can't disturb the screen`() {
        val words = Problem(R.string.document_blank, listOf("two\nlines\u001b[2J %1\$s")).words(app.resources)
        assertEquals("two\\u000alines\\u001b[2J %1\$s holds no text: choose another.", words)
    }
}
