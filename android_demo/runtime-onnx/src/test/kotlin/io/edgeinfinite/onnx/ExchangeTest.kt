package io.edgeinfinite.onnx

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.Session
import io.edgeinfinite.core.SessionFile
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import java.io.File
import java.nio.file.Path
import kotlin.math.abs

/** A text begun by PyTorch or ExecuTorch, or by another artifact of the model, goes on here. */
class ExchangeTest {
    @TempDir
    lateinit var folder: Path

    /** What tests/android/exchanges.py wrote. */
    class Case(
        private val fields: JsonObject,
    ) {
        val receiver = text("receiver")
        val state = text("state")
        val before = tokens("before")
        val tokens = tokens("tokens")
        val answer = tokens("answer")

        private fun text(name: String) = fields.getValue(name).jsonPrimitive.content

        private fun tokens(name: String) =
            fields.getValue(name).jsonArray.map { it.jsonPrimitive.int }.toIntArray()

        override fun toString() = state
    }

    @ParameterizedTest
    @MethodSource("cases")
    fun `a text that another engine began goes on as if it had been read here`(case: Case) {
        Recorded(case.receiver).engine().use { engine ->
            Session(engine).use { stayed ->
                stayed.append(case.before)
                val restored = SessionFile.load(engine, File(exchanges, case.state))
                assertTrue(restored.takenOver)
                restored.session.use { session ->
                    assertSameSession(stayed, session, "${case.state}, taken over")
                    val expected = stayed.append(case.tokens)
                    val logits = session.append(case.tokens)
                    assertClose(expected, logits, case.state)
                    answersAs(case, session, logits)
                    case.answer.forEach { stayed.append(intArrayOf(it)) }
                    assertSameSession(stayed, session, "${case.state}, at the end")
                    val back = File(Recorded.fixtures, "kotlin/exchanges").apply { mkdirs() }
                    SessionFile.save(session, back.resolve(case.state))
                }
            }
        }
    }

    /** The other engine's choices are the best ones here, or as near as two engines are apart. */
    private fun answersAs(
        case: Case,
        session: Session,
        first: FloatArray,
    ) {
        var last = first
        for (token in case.answer) {
            val margin = 2 * TOLERANCE * maxOf(1f, last.maxOf { abs(it) })
            assertTrue(
                last[token] >= last.max() - margin,
                "$case: $token is ${last.max() - last[token]} below the best",
            )
            last = session.append(intArrayOf(token))
        }
    }

    @ParameterizedTest
    @MethodSource("policies")
    fun `a cache in float16 takes over one in float32, and back without a change`(policy: String) {
        val (wide, narrow) = Recorded(policy).engine() to Recorded("$policy-float16").engine()
        wide.use {
            narrow.use {
                Session(wide).use { session ->
                    session.append(TEXT)
                    moved(session, narrow).use { there ->
                        assertSameSession(session, there, policy, HALF)
                        moved(there, wide).use { back ->
                            assertSameSession(there, back, policy, tolerance = 0f)
                            assertClose(there.append(MORE), back.append(MORE), policy, HALF_TOLERANCE)
                        }
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("policies")
    fun `a cache of bytes goes on with its own artifact alone`(policy: String) {
        val (floats, bytes) = Recorded(policy).engine() to Recorded("$policy-bytes").engine()
        floats.use {
            bytes.use {
                for ((one, other) in listOf(floats to bytes, bytes to floats)) {
                    Session(one).use { session ->
                        session.append(TEXT)
                        val error = assertThrows(EdgeInfiniteException::class.java) { moved(session, other).close() }
                        assertTrue("int8 cache" in error.message!!, error.message)
                        moved(session, one).use { assertSameSession(session, it, policy, tolerance = 0f) }
                    }
                }
            }
        }
    }

    @Test
    fun `a text goes on under another quantization, whose session it then is`() {
        val (plain, int4) = Recorded("reencode").engine() to Recorded("reencode-int4").engine()
        plain.use {
            int4.use {
                Session(plain).use { session ->
                    session.append(TEXT)
                    moved(session, int4).use { there ->
                        there.append(MORE)
                        val file = saved(there)
                        val again = SessionFile.load(int4, file)
                        assertTrue(!again.takenOver)
                        again.session.use { assertEquals(TEXT.size + MORE.size.toLong(), it.tokensRead) }
                    }
                }
            }
        }
    }

    @Test
    fun `a number that float16 can't hold is one line`() {
        Recorded("reencode").engine().use { wide ->
            Recorded("reencode-float16").engine().use { narrow ->
                Session(wide).use { session ->
                    session.append(TEXT)
                    session.state.buffer("k_cache_1").asFloatBuffer().put(3, 1e5f)
                    val error = assertThrows(EdgeInfiniteException::class.java) { moved(session, narrow).close() }
                    assertTrue(
                        "k_cache_1" in error.message!! && "--cache-type float32" in error.message!!,
                        error.message,
                    )
                }
            }
        }
    }

    private fun moved(
        session: Session,
        engine: Engine,
    ): Session = SessionFile.load(engine, saved(session)).also {
        assertTrue(it.takenOver != (session.engine === engine))
    }.session

    private fun saved(session: Session): File =
        folder.resolve("moved.session").toFile().also { SessionFile.save(session, it) }

    private companion object {
        val TEXT = IntArray(90) { 3 + it * 11 % 200 }
        val MORE = IntArray(4) { 3 + it * 29 % 200 }

        /** Of rounding a number to 11 bits. */
        const val HALF = 5e-4f
        val exchanges = File(Recorded.fixtures, "exchanges")

        @JvmStatic
        fun cases(): List<Case> =
            Json.parseToJsonElement(File(exchanges, "cases.json").readText()).jsonArray.map { Case(it.jsonObject) }

        @JvmStatic
        fun policies() = listOf("reencode", "carry-recall")
    }
}
