package io.edgeinfinite.app

import com.tom_roush.pdfbox.android.PDFBoxResourceLoader
import io.edgeinfinite.app.data.Documents
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import java.io.File

/** The documents of tests/fuzz (tests/android/fuzzed.py): read, or refused in one line. */
@RunWith(RobolectricTestRunner::class)
class HostileDocumentsTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val long by lazy { File(folder.root, "long.txt") }
    private val documents by lazy { Documents(app.contentResolver, app.cacheDir) }

    // Else PDFs fail for the library's tables, here and in every test after these.
    @Before
    fun assets() = PDFBoxResourceLoader.init(app)

    @Test
    fun `a text is read to the last byte`() {
        val files = filesOf("read")
        assertTrue("${files.size}", files.size > 20)
        for (file in files) {
            val (_, text, guess) = documents.readText(PickedFiles.file(file), long)
            assertNull(file.name, guess)
            if (file.extension == "txt") assertEquals(file.name, file.readBytes().withoutMark(), text)
        }
    }

    @Test
    fun `what isn't UTF-8 is a document of another kind, a guess or a loss that is told, or refused in one line`() {
        val files = filesOf("refused")
        assertTrue("${files.size}", files.size > 20)
        val read = files.filter { isRead(it) }
        val names = read.map { it.name }
        assertTrue("$names", "a.epub" in names && "a.docx" in names && read.any { it.extension == "txt" })
        assertTrue(files.any { it !in read })
    }

    private fun isRead(file: File): Boolean {
        val document =
            try {
                documents.readText(PickedFiles.file(file), long)
            } catch (_: ProblemException) {
                assertOneLine(file)
                return false
            }
        val head = file.readBytes().take(2)
        val says = head in UTF_16 || head == PK || head == PDF || file.extension == "html"
        assertTrue(file.name, document.text.isNotBlank() && (says || document.guess != null || document.left != null))
        return true
    }

    @Test
    fun `so is a name that reaches for the screen`() {
        val file = folder.newFile("two\nlines\u001b[2J.txt").apply { writeBytes(byteArrayOf(0)) }
        assertOneLine(file)
    }

    private fun assertOneLine(file: File) {
        val error =
            assertThrows(file.name, ProblemException::class.java) {
                documents.readText(PickedFiles.file(file), long)
            }
        val line = error.problem.words(app.resources)
        assertTrue(line, line.isNotEmpty() && line.none(Char::isISOControl))
    }

    private fun ByteArray.withoutMark(): String {
        val text = String(if (take(3) == MARK) copyOfRange(3, size) else this)
        return text.replace("\r\n", "\n").replace('\r', '\n')
    }

    private fun filesOf(outcome: String): List<File> =
        File(System.getProperty("edgeinfinite.fixtures"), "fuzz/document/$outcome").listFiles().orEmpty().sorted()

    private companion object {
        val MARK = listOf(0xEF, 0xBB, 0xBF).map(Int::toByte)
        val UTF_16 = setOf(listOf<Byte>(-1, -2), listOf<Byte>(-2, -1))
        val PK = "PK".toByteArray().toList()
        val PDF = "%P".toByteArray().toList()
    }
}
