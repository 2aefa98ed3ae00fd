package io.edgeinfinite.core

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.decodeFromJsonElement
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

class AnswerTextTest {
    @Serializable
    private class Step(
        val text: String,
        @SerialName("whole_tokens") val wholeTokens: Int,
    )

    @Serializable
    private class Case(
        val pieces: List<String>,
        val end: String,
        val stop: List<String>,
        val steps: List<Step>,
        val text: String,
        @SerialName("whole_tokens") val wholeTokens: Int,
        @SerialName("stopped_by") val stoppedBy: String?,
    )

    /** A stream whose tokens are indices of the given pieces; the last one comes with `flush`. */
    private class Pieces(
        private val pieces: List<String>,
        private val end: String = "",
    ) : TokenText {
        override val holds: Boolean get() = false

        override fun push(token: Int): String = pieces[token]

        override fun flush(): String = end
    }

    @Test
    fun `what is shown, held back and cut off is what Python shows`() {
        val cases = Json.decodeFromJsonElement<List<Case>>(Fixtures.json("sampling/stops.json"))
        assertTrue(cases.count { it.stoppedBy != null } > 50 && cases.count { it.stoppedBy == null } > 50)
        for (case in cases) {
            val answer = AnswerText(Pieces(case.pieces, case.end), case.stop)
            val taken = StringBuilder()
            case.steps.forEachIndexed { token, step ->
                taken.append(answer.push(token))
                val what = "${case.pieces} ${case.stop} $token"
                assertEquals(step.text, answer.text, what)
                assertEquals(step.wholeTokens, answer.wholeTokens, what)
            }
            taken.append(answer.finish())
            assertEquals(case.text, answer.text)
            assertEquals(case.text, taken.toString())
            assertEquals(case.stoppedBy, answer.stoppedBy)
            assertEquals(case.wholeTokens, answer.wholeTokens)
        }
    }

    @Test
    fun `an empty stop string is refused`() {
        assertThrows(EdgeInfiniteException::class.java) { AnswerText(Pieces(emptyList()), listOf("a", "")) }
    }
}
