package io.edgeinfinite.app

import io.edgeinfinite.app.data.Documents
import io.edgeinfinite.core.EdgeInfiniteException
import org.junit.Assert.assertArrayEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import java.io.File

/** The documents of tests/fuzz (tests/android/fuzzed.py): read as they are, or refused in one line. */
@RunWith(RobolectricTestRunner::class)
class HostileDocumentsTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val documents by lazy { Documents(RuntimeEnvironment.getApplication().contentResolver) }

    @Test
    fun `a text is read to the last byte`() {
        val files = filesOf("read")
        assertTrue("${files.size}", files.size > 20)
        for (file in files) {
            val text = documents.readText(PickedFiles.file(file)).text
            assertArrayEquals(file.name, file.readBytes().withoutMark(), text.toByteArray())
        }
    }

    @Test
    fun `anything else is refused in one line`() {
        val files = filesOf("refused")
        assertTrue("${files.size}", files.size > 20)
        for (file in files) assertOneLine(file)
    }

    @Test
    fun `so is a name that reaches for the screen`() {
        val file = folder.newFile("two\nlines\u001b[2J.txt").apply { writeBytes(byteArrayOf(-1)) }
        assertOneLine(file)
    }

    private fun assertOneLine(file: File) {
        val error =
            assertThrows(file.name, EdgeInfiniteException::class.java) {
                documents.readText(PickedFiles.file(file))
            }
        val line = error.message.orEmpty()
        assertTrue(line, line.isNotEmpty() && line.none(Char::isISOControl))
    }

    private fun ByteArray.withoutMark() = if (take(3) == MARK) copyOfRange(3, size) else this

    private fun filesOf(outcome: String): List<File> =
        File(System.getProperty("edgeinfinite.fixtures"), "fuzz/document/$outcome").listFiles().orEmpty().sorted()

    private companion object {
        val MARK = listOf(0xEF, 0xBB, 0xBF).map(Int::toByte)
    }
}
