package io.edgeinfinite.onnx

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.ReadingCancelled
import io.edgeinfinite.core.Session
import io.edgeinfinite.core.SessionFile
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import java.util.Random
import kotlin.math.abs

/** The Kotlin session on real artifacts: token for token and state for state Python's. */
class OnnxSessionTest {
    @ParameterizedTest
    @MethodSource("names")
    fun `prompts, turns, decode and compressions equal Python's`(name: String) {
        val recorded = Recorded(name)
        recorded.engine().use { engine ->
            Session(engine, recorded.chunkLength).use { session ->
                recorded.steps.indices.forEach { replay(recorded, it, session) }
                assertTrue(session.compressions > 5)
            }
        }
    }

    @ParameterizedTest
    @MethodSource("names")
    fun `a state that Python wrote goes on as Python's did`(name: String) {
        val recorded = Recorded(name)
        recorded.engine().use { engine ->
            for (index in 1 until recorded.steps.size) {
                val before = recorded.steps[index - 1].state
                val (session, extra) = SessionFile.load(engine, before, recorded.chunkLength)
                assertEquals(mapOf("step" to "${index - 1}"), extra)
                session.use { replay(recorded, index, it) }
            }
        }
    }

    /** Reads a step as Python did and compares everything; also writes the state for Python. */
    private fun replay(
        recorded: Recorded,
        index: Int,
        session: Session,
    ) {
        val step = recorded.steps[index]
        val engine = session.engine
        val what = "${recorded.name} $index (${step.kind})"
        val first = recorded.steps.getOrNull(index - 1)?.logitsUntil ?: 0
        val expected = (first until step.logitsUntil).map { recorded.logits(it, engine.vocabulary) }
        val actual: List<FloatArray> =
            when (step.kind) {
                "append", "resumed" -> listOf(session.append(step.tokens))
                "decode" -> step.tokens.map { session.append(intArrayOf(it)) }
                "greedy" -> {
                    val before = recorded.logits(first - 1, engine.vocabulary)
                    greedy(session, before, step.tokens, recorded.tolerance)
                }
                else -> emptyList<FloatArray>().also { stopped(session, step.tokens) }
            }
        assertEquals(expected.size, actual.size, what)
        expected.zip(actual).forEach { (one, other) -> assertClose(one, other, what, recorded.tolerance) }
        assertEquals(step.tokensRead.toLong(), session.tokensRead, what)
        SessionFile.load(engine, step.state).session.use {
            assertSameSession(it, session, what, recorded.tolerance)
        }
        SessionFile.save(session, recorded.output("state_$index.safetensors"), mapOf("step" to "$index"))
    }

    /** Python's choice is the best one here too, or as near to it as two kernels may be apart. */
    private fun greedy(
        session: Session,
        before: FloatArray,
        tokens: IntArray,
        tolerance: Float,
    ): List<FloatArray> {
        var last = before
        return tokens.map { token ->
            val margin = 2 * tolerance * maxOf(1f, last.maxOf { abs(it) })
            assertTrue(last[token] >= last.max() - margin, "token $token is ${last.max() - last[token]} below the best")
            session.append(intArrayOf(token)).also { last = it }
        }
    }

    private fun stopped(
        session: Session,
        tokens: IntArray,
    ) {
        val before = session.tokensRead
        assertThrows(ReadingCancelled::class.java) {
            session.append(tokens, cancelled = { session.tokensRead >= before + 30 })
        }
    }

    @ParameterizedTest
    @MethodSource("names")
    fun `any split gives the same state`(name: String) {
        val random = Random(3)
        Recorded(name).engine().use { engine ->
            repeat(12) {
                val tokens = randomTokens(engine, 1 + random.nextInt(150), random)
                val whole = Session(engine, chunkLength = 1000)
                val expected = whole.append(tokens)
                val session = Session(engine, chunkLength = 1 + random.nextInt(12))
                var logits = FloatArray(0)
                var start = 0
                while (start < tokens.size) {
                    val longest = if (random.nextBoolean()) 1 else 40
                    val end = minOf(start + 1 + random.nextInt(longest), tokens.size)
                    logits = session.append(tokens.copyOfRange(start, end))
                    start = end
                }
                // Chunks of other sizes are summed in another order; int4 and int8 round activations.
                if ("int" !in name) {
                    val tolerance =
                        when {
                            "npu" in name -> NPU_TOLERANCE
                            "float16" in name -> HALF_TOLERANCE
                            "bytes" in name -> BYTE_TOLERANCE
                            else -> SPLIT_TOLERANCE
                        }
                    assertClose(expected, logits, name, tolerance)
                }
                assertEquals(whole.residual.toIntArray().toList(), session.residual.toIntArray().toList())
                assertEquals(whole.tokensRead, session.tokensRead)
                whole.close()
                session.close()
            }
        }
    }

    @Test
    fun `reading changes only the slots of the tokens read`() {
        Recorded("reencode").engine().use { engine ->
            Session(engine).use { session ->
                val cache = session.state.buffer("k_cache_0").asFloatBuffer()
                for (index in 0 until cache.capacity()) cache.put(index, SENTINEL)
                session.append(randomTokens(engine, 9, Random(1)))
                val (_, heads, capacity, dim) = session.state.specs.first { it.name == "k_cache_0" }.shape
                for (head in 0 until heads) {
                    for (slot in 0 until capacity) {
                        val value = cache.get((head * capacity + slot) * dim)
                        assertEquals(slot >= 9, value == SENTINEL, "slot $slot")
                    }
                }
            }
        }
    }

    @Test
    fun `the state stays where it is and as large as it is at any length`() {
        Recorded("reencode").engine().use { engine ->
            Session(engine).use { session ->
                val bytes = session.stateBytes
                session.append(randomTokens(engine, 20_000, Random(1)))
                assertEquals(bytes, session.stateBytes)
                assertEquals(session.state.specs.sumOf { it.bytes }, bytes)
                assertTrue(session.compressions > 800)
            }
        }
    }

    @Test
    fun `two sessions share an engine and don't disturb each other`() {
        Recorded("reencode").engine().use { engine ->
            val tokens = randomTokens(engine, 90, Random(2))
            val alone = Session(engine).use { it.append(tokens) }
            Session(engine).use { one ->
                Session(engine).use { other ->
                    one.append(tokens.copyOfRange(0, 50))
                    other.append(randomTokens(engine, 77, Random(3)))
                    assertClose(alone, one.append(tokens.copyOfRange(50, 90)), "shared", SPLIT_TOLERANCE)
                }
            }
        }
    }

    @Test
    fun `a stopped reading stops within one chunk and its rest can be dropped`() {
        Recorded("reencode").engine().use { engine ->
            Session(engine, chunkLength = 5).use { session ->
                session.append(randomTokens(engine, 6, Random(1)))
                var stop = false
                assertThrows(ReadingCancelled::class.java) {
                    session.append(randomTokens(engine, 300, Random(2)), { stop = true }, { stop })
                }
                assertEquals(11, session.tokensRead)
                session.dropUnread()
                assertThrows(EdgeInfiniteException::class.java) { session.append(IntArray(0)) }
            }
        }
    }

    @Test
    fun `a token outside the vocabulary is refused and nothing is read`() {
        Recorded("reencode").engine().use { engine ->
            Session(engine).use { session ->
                for (bad in listOf(-1, engine.vocabulary)) {
                    assertThrows(EdgeInfiniteException::class.java) { session.append(intArrayOf(5, bad)) }
                }
                assertEquals(0, session.tokensRead)
                assertTrue(session.unread.isEmpty())
            }
            assertThrows(EdgeInfiniteException::class.java) { Session(engine, chunkLength = 0) }
        }
    }

    private fun randomTokens(
        engine: Engine,
        count: Int,
        random: Random,
    ) = IntArray(count) { 3 + random.nextInt(engine.vocabulary - 3) }

    companion object {
        private const val SENTINEL = 123456f
        private const val SPLIT_TOLERANCE = 2e-4f

        @JvmStatic
        fun names() = Recorded.names()
    }
}
