package io.edgeinfinite.app.documents

import com.tom_roush.pdfbox.android.PDFBoxResourceLoader
import com.tom_roush.pdfbox.cos.COSName
import com.tom_roush.pdfbox.pdmodel.PDDocument
import com.tom_roush.pdfbox.pdmodel.PDPage
import com.tom_roush.pdfbox.pdmodel.PDPageContentStream
import com.tom_roush.pdfbox.pdmodel.encryption.AccessPermission
import com.tom_roush.pdfbox.pdmodel.encryption.StandardProtectionPolicy
import com.tom_roush.pdfbox.pdmodel.font.PDType0Font
import com.tom_roush.pdfbox.pdmodel.font.PDType1Font
import com.tom_roush.pdfbox.pdmodel.interactive.form.PDAcroForm
import com.tom_roush.pdfbox.pdmodel.interactive.form.PDTextField
import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.app
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import java.io.File
import kotlin.random.Random

/** PDFs that the test writes itself, read with the library and the assets that the APK has. */
@RunWith(RobolectricTestRunner::class)
class PdfTextTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val file by lazy { folder.newFile("a.pdf") }

    @Before
    fun assets() = PDFBoxResourceLoader.init(app)

    @Test
    fun `the pages of a PDF are read in their order, whatever its name says`() {
        write(listOf("The first page.", "It has two lines."), listOf("The second page."))
        val expected = "The first page.\nIt has two lines.\nThe second page."
        assertEquals(expected, read().text)
        assertEquals(expected, read("renamed.txt").text)
        assertEquals("nothing stays behind", listOf("a.pdf"), folder.root.list().orEmpty().toList())
    }

    @Test
    fun `letters of an embedded font are read, also those outside of Latin-1`() {
        PDDocument().use { document ->
            val font = app.assets.open(FONT).use { PDType0Font.load(document, it, true) }
            document.page(listOf("Größe, čas, Москва")) { setFont(font, SIZE) }
            document.save(file)
        }
        assertEquals("Größe, čas, Москва", read().text)
    }

    @Test
    fun `letters that are drawn as one sign are letters`() {
        val drawn = "BT /F 12 Tf 20 200 Td (The of\\001ce is \\001nal.) Tj ET"
        val page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 5 0 R/Resources<</Font<</F 4 0 R>>>>>>"
        val encoding = "<</Type/Encoding/Differences[1/fi]>>"
        write(
            "<</Type/Catalog/Pages 2 0 R>>",
            "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            page,
            "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding$encoding>>",
            "<</Length ${drawn.length}>>stream\n$drawn\nendstream",
        )
        assertEquals("The office is final.", read().text)
    }

    /** A PDF of these objects, by their numbers. */
    private fun write(vararg objects: String) {
        val written = StringBuilder("%PDF-1.4\n")
        val places =
            objects.mapIndexed { at, one ->
                written.length.also { written.append("${at + 1} 0 obj$one endobj\n") }
            }
        val start = written.length
        written.append("xref\n0 ${objects.size + 1}\n0000000000 65535 f \n")
        for (place in places) written.append("${"%010d".format(place)} 00000 n \n")
        written.append("trailer<</Size ${objects.size + 1}/Root 1 0 R>>\nstartxref\n$start\n%%EOF")
        file.writeText(written.toString())
    }

    @Test
    fun `a PDF that may be opened but not changed is read, under each kind of encryption`() {
        for (bits in listOf(40, 128, 256)) {
            encrypt(bits, user = "")
            assertEquals("$bits", "Secret.", read().text)
        }
    }

    @Test
    fun `a password, pages without text, damage and too much text are refused in one line each`() {
        for (bits in listOf(40, 128, 256)) {
            encrypt(bits, user = "user")
            refuses("protected by a password")
        }
        write(emptyList(), emptyList())
        refuses("pictures of pages")
        file.writeText("%PDF-1.7\nnothing that a PDF has")
        refuses("is damaged")
        write(listOf("x".repeat(200)))
        refuses("more text than", mostBytes = 100)
    }

    @Test
    fun `words that lines divide are whole, and hyphens of their own stay`() {
        val lines = "It guaran-|tees the well-|known cause, a well-known|one. Anne-|Marie, dis-|placed."
        write(lines.split('|'))
        assertEquals("It guarantees\nthe well-known\ncause, a well-known\none. Anne-\nMarie, displaced.", read().text)
    }

    @Test
    fun `fields that were filled in are read`() {
        PDDocument().use { document ->
            document.page(listOf("Words")) { setFont(PDType1Font.HELVETICA, SIZE) }
            val form = PDAcroForm(document)
            document.documentCatalog.acroForm = form
            for ((name, value) in listOf("name" to "Alice", "town" to null, "pin" to "1234")) {
                val field = PDTextField(form).apply { partialName = name }
                field.isPassword = name == "pin"
                value?.let { field.cosObject.setString(COSName.V, it) }
                form.fields.add(field)
            }
            document.save(file)
        }
        assertEquals("Words\n\nname: Alice", read().text)
    }

    @Test
    fun `any damage is refused in one line or read`() {
        write(List(40) { "Line $it of a page that will be damaged." })
        val whole = file.readBytes()
        val random = Random(1)
        var refused = 0
        repeat(DAMAGED) {
            val bytes = whole.copyOf(if (it % 2 == 0) whole.size else random.nextInt(1, whole.size))
            repeat(random.nextInt(1, 30)) { bytes[random.nextInt(bytes.size)] = random.nextInt().toByte() }
            "%PDF-1.4".toByteArray().copyInto(bytes, endIndex = minOf(8, bytes.size))
            file.writeBytes(bytes)
            try {
                read()
            } catch (error: ProblemException) {
                refused += 1
                assertOneLine(error)
            }
        }
        assertTrue("$refused", refused in 1..<DAMAGED)
    }

    private fun read(
        name: String = "a.pdf",
        mostBytes: Long = MOST,
    ): Extracted = DocumentReader(mostBytes).read(name, file)

    private fun refuses(
        words: String,
        mostBytes: Long = MOST,
    ) {
        val line = assertOneLine(assertThrows(words, ProblemException::class.java) { read(mostBytes = mostBytes) })
        assertTrue(line, words in line && "a.pdf" in line)
    }

    private fun assertOneLine(error: ProblemException): String {
        val line = error.problem.words(app.resources)
        assertTrue(line, line.none(Char::isISOControl))
        return line
    }

    private fun write(vararg pages: List<String>) =
        PDDocument().use { document ->
            for (lines in pages) document.page(lines) { setFont(PDType1Font.HELVETICA, SIZE) }
            document.save(file)
        }

    private fun encrypt(
        bits: Int,
        user: String,
    ) = PDDocument().use { document ->
        document.page(listOf("Secret.")) { setFont(PDType1Font.TIMES_ROMAN, SIZE) }
        val policy = StandardProtectionPolicy("owner", user, AccessPermission().apply { setCanModify(false) })
        policy.encryptionKeyLength = bits
        document.protect(policy)
        document.save(file)
    }

    private fun PDDocument.page(
        lines: List<String>,
        font: PDPageContentStream.() -> Unit,
    ) {
        val page = PDPage()
        addPage(page)
        PDPageContentStream(this, page).use { content ->
            if (lines.isEmpty()) return
            content.beginText()
            content.font()
            content.setLeading(LEADING)
            content.newLineAtOffset(50f, 700f)
            for (line in lines) {
                content.showText(line)
                content.newLine()
            }
            content.endText()
        }
    }

    private companion object {
        const val MOST = 1_000_000L
        const val SIZE = 12f
        const val LEADING = 14.5f
        const val DAMAGED = 60
        const val FONT = "com/tom_roush/pdfbox/resources/ttf/LiberationSans-Regular.ttf"
    }
}
