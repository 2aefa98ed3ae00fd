package io.edgeinfinite.onnx

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.Session
import io.edgeinfinite.core.SessionFile
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestInstance
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.nio.file.Path

/** A session on disk goes on exactly where it was, or is refused whole. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class SessionFileTest {
    @TempDir
    lateinit var folder: Path

    private val engine: Engine = Recorded("reencode").engine()
    private val tokens = IntArray(70) { 3 + it * 7 % 200 }

    @AfterAll
    fun close() = engine.close()

    private fun saved(): File {
        val file = folder.resolve("s.safetensors").toFile()
        Session(engine).use { session ->
            session.append(tokens)
            SessionFile.save(session, file, mapOf("title" to "ein Text 🙂\n\"quoted\""))
        }
        return file
    }

    @Test
    fun `a restored session goes on bit for bit, with the caller's own metadata`() {
        val file = saved()
        Session(engine).use { straight ->
            straight.append(tokens)
            val (restored, extra) = SessionFile.load(engine, file)
            assertEquals(mapOf("title" to "ein Text 🙂\n\"quoted\""), extra)
            restored.use { assertArrayEquals(straight.append(tokens), it.append(tokens)) }
        }
    }

    @Test
    fun `saving replaces the file and leaves nothing beside it`() {
        val file = saved()
        SessionFile.load(engine, file).session.use { session ->
            session.append(intArrayOf(5))
            SessionFile.save(session, file)
        }
        SessionFile.load(engine, file).session.use { assertEquals(71, it.tokensRead) }
        assertEquals(listOf("s.safetensors"), folder.toFile().list()!!.toList())
    }

    @Test
    fun `a truncated file is refused`() {
        val whole = saved().readBytes()
        for (keep in listOf(0, 7, 8, 100, whole.size / 2, whole.size - 1)) refuses(whole.copyOf(keep), "not a whole")
    }

    @Test
    fun `a file with bytes too many is refused`() = refuses(saved().readBytes() + 0, "not a whole")

    @Test
    fun `every flipped bit is found`() {
        val whole = saved().readBytes()
        val header = 8 + java.nio.ByteBuffer.wrap(whole).order(java.nio.ByteOrder.LITTLE_ENDIAN).getLong(0).toInt()
        val dice = java.util.Random(24)
        val places = List(300) { dice.nextInt(8 * whole.size) } + (0 until 8 * header step 29)
        for (place in places) {
            val bit = 1 shl place % 8
            val flipped = whole.copyOf().also { it[place / 8] = (it[place / 8].toInt() xor bit).toByte() }
            refuses(flipped, "")
        }
    }

    @Test
    fun `NaN in the memory is refused`() {
        val file = folder.resolve("nan").toFile()
        Session(engine).use { session ->
            session.append(tokens)
            session.state.buffer("memory").asFloatBuffer().put(3, Float.NaN)
            SessionFile.save(session, file)
        }
        refuses(file.readBytes(), "NaN")
    }

    @Test
    fun `infinity in a cache of half-precision numbers is refused`() {
        Recorded("reencode-float16").engine().use { halves ->
            val file = folder.resolve("infinite").toFile()
            Session(halves).use { session ->
                session.append(tokens)
                SessionFile.save(session, file)
                SessionFile.load(halves, file).session.close()
                session.state.buffer("v_cache_1").putShort(0, 0x7C00)
                SessionFile.save(session, file)
            }
            val error = assertThrows(EdgeInfiniteException::class.java) { SessionFile.load(halves, file) }
            assertTrue("v_cache_1 holds NaN or infinity" in error.message!!, error.message)
        }
    }

    @Test
    fun `a newer format is refused`() =
        refuses(edited { it.replace("\\\"format\\\":2", "\\\"format\\\":9") }, "update the app")

    @Test
    fun `an older format is refused`() =
        refuses(edited { it.replace("\\\"format\\\":2", "\\\"format\\\":1") }, "start a new one")

    @Test
    fun `slots by head are refused by name`() =
        refuses(
            edited { it.replace("\\\"recall_slots\\\":0", "\\\"caches\\\":[[0,0]]") },
            "slots by head (geometry.caches)",
        )

    @Test
    fun `counters that don't agree are refused`() =
        refuses(edited { it.replace("\\\"tokens_read\\\":70", "\\\"tokens_read\\\":71") }, "don't agree")

    @Test
    fun `a wrong number of compressions is refused`() =
        refuses(edited { it.replace(Regex("compressions\\\\\":\\d"), "compressions\\\\\":9") }, "don't agree")

    @Test
    fun `a file that is sealed as the format says is the same file`() {
        val whole = saved().readBytes()
        assertArrayEquals(whole, sealed(whole))
    }

    @Test
    fun `another artifact's session is refused`() {
        val file = saved()
        Recorded("no-gate").engine().use { other ->
            val error = assertThrows(EdgeInfiniteException::class.java) { SessionFile.load(other, file) }
            assertTrue("another model" in error.message!!)
        }
    }

    @Test
    fun `a missing file is refused`() {
        assertThrows(EdgeInfiniteException::class.java) {
            SessionFile.load(engine, folder.resolve("none").toFile())
        }
    }

    /** The header's text changed, without changing its length. */
    private fun edited(change: (String) -> String): ByteArray {
        val text = saved().readBytes().toString(Charsets.ISO_8859_1)
        val changed = change(text).also { check(it != text && it.length == text.length) }
        return sealed(changed.toByteArray(Charsets.ISO_8859_1))
    }

    /** With the checksum that the format asks for: of the file with zeros in its place. */
    private fun sealed(bytes: ByteArray): ByteArray {
        val text = bytes.toString(Charsets.ISO_8859_1)
        val digits = Regex("\"edgeinfinite\\.sha256\":\"([0-9a-f]{64})\"").find(text)!!.groups[1]!!.range
        val open = text.replaceRange(digits, "0".repeat(64)).toByteArray(Charsets.ISO_8859_1)
        val digest = java.security.MessageDigest.getInstance("SHA-256").digest(open)
        val checksum = digest.joinToString("") { "%02x".format(it) }
        return text.replaceRange(digits, checksum).toByteArray(Charsets.ISO_8859_1)
    }

    private fun refuses(
        bytes: ByteArray,
        reason: String,
    ) {
        val file = folder.resolve("bad").toFile().apply { writeBytes(bytes) }
        val error = assertThrows(EdgeInfiniteException::class.java) { SessionFile.load(engine, file).session.close() }
        assertTrue(reason in error.message!! && "\n" !in error.message!!, error.message)
    }
}
