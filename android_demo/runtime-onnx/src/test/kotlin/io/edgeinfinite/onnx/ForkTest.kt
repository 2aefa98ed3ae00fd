package io.edgeinfinite.onnx

import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.ReadingCancelled
import io.edgeinfinite.core.Session
import io.edgeinfinite.core.SessionFile
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertNotSame
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import java.nio.file.Path

/** Forks of a session: independent, exact, and without a copy until one of them reads. */
class ForkTest {
    @TempDir
    lateinit var folder: Path

    private fun tokens(
        count: Int,
        seed: Int = 0,
    ) = IntArray(count) { 3 + (it * 7 + seed) % 200 }

    /** Everything that a session file holds, as bytes. */
    private fun content(session: Session): ByteArray {
        val file = folder.resolve("content").toFile()
        SessionFile.save(session, file)
        return file.readBytes()
    }

    private fun read(
        engine: Engine,
        vararg texts: IntArray,
    ) = Session(engine, chunkLength = 5).also { session -> texts.forEach { session.append(it) } }

    private fun onEngine(
        name: String = "carry-recall",
        test: (Engine) -> Unit,
    ) = Recorded(name).engine().use(test)

    @ParameterizedTest
    @MethodSource("io.edgeinfinite.onnx.Recorded#names")
    fun `a fork equals reading anew`(name: String) =
        onEngine(name) { engine ->
            for (before in listOf(3, 30, 90)) {
                val session = read(engine, tokens(before))
                val fork = session.fork()
                val one = session.append(tokens(25, seed = 1))
                val other = fork.append(tokens(25, seed = 2))
                for ((logits, forked, seed) in listOf(Triple(one, session, 1), Triple(other, fork, 2))) {
                    val alone = read(engine, tokens(before))
                    assertArrayEquals(alone.append(tokens(25, seed)), logits)
                    assertArrayEquals(content(alone), content(forked))
                    alone.close()
                    forked.close()
                }
            }
        }

    @ParameterizedTest
    @MethodSource("io.edgeinfinite.onnx.Recorded#names")
    fun `going back restores every array bit for bit`(name: String) =
        onEngine(name) { engine ->
            val session = read(engine, tokens(60))
            val before = content(session)
            val fork = session.fork()
            repeat(2) {
                session.append(tokens(41, seed = 1))
                session.goBack(fork)
                assertArrayEquals(before, content(session))
                assertArrayEquals(before, content(fork))
            }
            fork.close()
            val alone = read(engine, tokens(60))
            assertArrayEquals(alone.append(tokens(9)), session.append(tokens(9)))
            assertArrayEquals(content(alone), content(session))
            listOf(alone, session).forEach { it.close() }
        }

    @Test
    fun `forks share a state until one of them reads`() =
        onEngine { engine ->
            val session = read(engine, tokens(60))
            val mine = session.state
            val (first, second) = List(2) { session.fork() }
            assertSame(mine, first.state)
            session.append(intArrayOf(5))
            assertSame(mine, session.state) { "the engine has bound its buffers" }
            assertNotSame(mine, first.state)
            assertSame(first.state, second.state)
            first.append(intArrayOf(6))
            assertNotSame(first.state, second.state)
            listOf(session, first, second).forEach { it.close() }
        }

    @Test
    fun `a closed fork costs no copy and takes nothing from the others`() =
        onEngine { engine ->
            val session = read(engine, tokens(60))
            val other = session.fork()
            session.fork().close()
            other.close()
            other.close()
            val mine = session.state
            session.append(intArrayOf(5))
            assertSame(mine, session.state)
            val fork = session.fork()
            session.close()
            val alone = read(engine, tokens(60), intArrayOf(5))
            assertArrayEquals(alone.append(tokens(20)), fork.append(tokens(20)))
            listOf(alone, fork).forEach { it.close() }
        }

    @Test
    fun `a session that went back has nothing to do with its other forks`() =
        onEngine { engine ->
            val session = read(engine, tokens(60))
            val early = session.fork()
            session.append(tokens(9))
            val late = session.fork()
            session.goBack(early)
            val before = content(session)
            late.append(intArrayOf(1, 2, 3))
            assertArrayEquals(before, content(session))
            assertArrayEquals(before, content(early))
            listOf(session, early, late).forEach { it.close() }
        }

    @Test
    fun `a fork keeps the tokens that a stopped reading left`() =
        onEngine { engine ->
            val session = Session(engine, chunkLength = 5)
            assertThrows(ReadingCancelled::class.java) {
                session.append(tokens(60), cancelled = { session.tokensRead > 20 })
            }
            val fork = session.fork()
            session.dropUnread()
            fork.append(IntArray(0))
            val alone = read(engine, tokens(60))
            assertArrayEquals(content(alone), content(fork))
            listOf(alone, fork, session).forEach { it.close() }
        }
}
