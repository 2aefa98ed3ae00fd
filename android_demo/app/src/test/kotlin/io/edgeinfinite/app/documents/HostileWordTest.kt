package io.edgeinfinite.app.documents

import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.app
import io.edgeinfinite.app.documents.WordFiles.paragraph
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import java.io.File

/** Word files that are made to break their readers. */
@RunWith(RobolectricTestRunner::class)
class HostileWordTest {
    @get:Rule
    val folder = TemporaryFolder()

    @Test
    fun `a small archive that unpacks to much is refused`() {
        val bomb = WordFiles.of(paragraph("x".repeat(MOST.toInt())))
        assertTrue(bomb.size < 20_000)
        refusesAsTooLong(bomb)
        val spread = WordFiles.of(paragraph("x"), mapOf("word/styles.xml" to " ".repeat(MOST.toInt())))
        refusesAsTooLong(spread)
    }

    @Test
    fun `entities of its own bring in no file and don't grow`() {
        val secret = folder.newFile("secret").apply { writeText("SECRET") }
        val doubled = (1..40).joinToString("") { "<!ENTITY e$it '&e${it - 1};&e${it - 1};'>" }
        val head = "<!DOCTYPE d [<!ENTITY x SYSTEM 'file://$secret'><!ENTITY e0 'grown'>$doubled]>"
        val main = head + WordFiles.document(paragraph("a &x; &e40; b"))
        val text = read(WordFiles.of("", mapOf(WordFiles.MAIN to main))).text
        assertTrue(text, "SECRET" !in text && "grown" !in text && text.endsWith("b"))
    }

    @Test
    fun `a note that is referred to without end costs what it becomes`() {
        val note = "<w:footnote w:id='2'>${paragraph("x".repeat(50_000))}</w:footnote>"
        val body = "<w:p>" + "<w:r><w:footnoteReference w:id='2'/></w:r>".repeat(1_000) + "</w:p>"
        val notes = mapOf("word/footnotes.xml" to WordFiles.root("footnotes", note))
        refusesAsTooLong(WordFiles.of(body, notes))
        val empty = "<w:footnote w:id='2'>${"<w:p/>".repeat(50_000)}</w:footnote>"
        refusesAsTooLong(WordFiles.of(body, mapOf("word/footnotes.xml" to WordFiles.root("footnotes", empty))))
    }

    @Test
    fun `what is nested without end is read without its layout, in time that is linear`() {
        for (tag in listOf("w:smartTag", "w:p><w:r", "w:tbl><w:tr><w:tc", "m:oMath><m:f")) {
            val start = System.nanoTime()
            val deep = WordFiles.of(paragraph("one") + "<$tag>".repeat(20_000) + "<w:t>two</w:t>")
            val words = Regex("[a-z]+").findAll(read(deep).text).map { it.value }.toList()
            assertEquals(tag, "one", words.first())
            assertTrue(tag, System.nanoTime() - start < SECONDS)
        }
    }

    @Test
    fun `time and text are linear in what stands beside each other`() {
        val wide = "<w:tc><w:tcPr><w:gridSpan w:val='999999999'/><w:vMerge/></w:tcPr><w:p/></w:tc>"
        val bodies =
            listOf(
                "<w:tbl>" + "<w:tr>$wide</w:tr>".repeat(10_000) + "</w:tbl>" + paragraph("x"),
                "<w:tbl><w:tr>" + wide.repeat(10_000) + "</w:tr></w:tbl>" + paragraph("x"),
                "<w:p>" + RUN.repeat(50_000) + "</w:p>",
                "<w:p>" + "<w:r><w:rPr><w:b/></w:rPr><w:t>x</w:t></w:r>".repeat(30_000) + "</w:p>",
                "<w:p>" + "<w:r><w:fldChar w:fldCharType='begin'/></w:r>".repeat(30_000) + "$RUN</w:p>",
                "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr></w:p>".repeat(30_000) + paragraph("x"),
                "<w:p><w:hyperlink w:anchor='a'>" + RUN.repeat(30_000) + "</w:hyperlink></w:p>",
                "<w:p><w:fldSimple w:instr='EQ ${"x\\f ".repeat(50_000)}\\f(${",x".repeat(50_000)};2)'/>$RUN</w:p>",
            )
        for ((at, body) in bodies.withIndex()) {
            val start = System.nanoTime()
            val text = read(WordFiles.of(body)).text
            assertTrue("$at", "x" in text && text.length < 500_000)
            assertTrue("$at", System.nanoTime() - start < SECONDS)
        }
    }

    @Test
    fun `time is linear in styles, lists and boxes, too`() {
        val much = "<w:rsid w:val='1'/>".repeat(30_000)
        val lvl = "<w:lvl w:ilvl='0'>$much<w:lvlText w:val='%1${"%1".repeat(30_000)}'/></w:lvl>"
        val numbering =
            "<w:abstractNum w:abstractNumId='1'>$lvl</w:abstractNum>" +
                "<w:num w:numId='1'>$much<w:abstractNumId w:val='1'/></w:num>"
        val styles = "<w:style w:type='paragraph' w:styleId='a'>$much<w:name w:val='a'/></w:style>"
        val parts =
            mapOf(
                "word/styles.xml" to WordFiles.root("styles", styles),
                "word/numbering.xml" to WordFiles.root("numbering", numbering),
            )
        val place = "<w:pStyle w:val='a'/><w:numPr><w:ilvl w:val='0'/><w:numId w:val='1'/></w:numPr>"
        val boxes = "<w:p><w:r><w:drawing>" + "<w:txbxContent>".repeat(20_000) + "</w:drawing></w:r></w:p>"
        for (body in listOf(paragraph("x", place).repeat(10_000), boxes + paragraph("x"))) {
            val start = System.nanoTime()
            assertTrue("x" in read(WordFiles.of(body, parts)).text)
            assertTrue(body.take(20), System.nanoTime() - start < SECONDS)
        }
    }

    @Test
    fun `styles and lists that refer to each other in circles end`() {
        val list = "<w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr>"
        val styles =
            "<w:style w:type='paragraph' w:styleId='a'><w:basedOn w:val='b'/></w:style>" +
                "<w:style w:type='paragraph' w:styleId='b'><w:basedOn w:val='a'/></w:style>" +
                "<w:style w:type='numbering' w:styleId='n'>$list</w:style>"
        val numbering =
            "<w:abstractNum w:abstractNumId='1'><w:numStyleLink w:val='n'/></w:abstractNum>" +
                "<w:num w:numId='1'><w:abstractNumId w:val='1'/></w:num>"
        val numbered = "<w:numPr><w:ilvl w:val='99999999999'/><w:numId w:val='1'/></w:numPr>"
        val body = paragraph("x", "<w:pStyle w:val='a'/>") + paragraph("y", numbered)
        val parts =
            mapOf(
                "word/styles.xml" to WordFiles.root("styles", styles),
                "word/numbering.xml" to WordFiles.root("numbering", numbering),
            )
        assertEquals("x\n\ny", read(WordFiles.of(body, parts)).text)
    }

    private fun refusesAsTooLong(bytes: ByteArray) {
        val line = assertThrows(ProblemException::class.java) { read(bytes) }.problem.words(app.resources)
        assertTrue(line, "more text than" in line)
    }

    private fun read(bytes: ByteArray): Extracted =
        DocumentReader(MOST).read("a.docx", File(folder.root, "copy").apply { writeBytes(bytes) })

    private companion object {
        const val RUN = "<w:r><w:t>x</w:t></w:r>"
        const val MOST = 5_000_000L
        const val SECONDS = 15_000_000_000L
    }
}
