package io.edgeinfinite.app.documents

import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.app
import io.edgeinfinite.app.documents.WordFiles.paragraph
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import java.io.File

/** Word files; that their texts are Python's is [SameTextTest]'s. */
@RunWith(RobolectricTestRunner::class)
class WordTextTest {
    @get:Rule
    val folder = TemporaryFolder()

    @Test
    fun `headings, tables and signs are Markdown, and nothing is told`() {
        val up = "<w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>6</w:t></w:r>"
        val cells = listOf("a", "b").joinToString("") { "<w:tc>${paragraph(it)}</w:tc>" }
        val body =
            paragraph("The sea", "<w:pStyle w:val='Heading1'/>") +
                "<w:p><w:r><w:t>10</w:t></w:r>$up<w:r><w:t xml:space='preserve'> fish</w:t></w:r></w:p>" +
                "<w:tbl><w:tr>$cells</w:tr></w:tbl>"
        val found = read("a.docx", WordFiles.of(body))
        assertEquals("# The sea\n\n10^6 fish\n\n| a | b |\n| --- | --- |", found.text)
        assertNull(found.left)
        assertNull(found.guess)
    }

    @Test
    fun `what was deleted, is hidden or only holds a place isn't read`() {
        val body =
            "<w:p><w:r><w:t>seen</w:t></w:r><w:del><w:r><w:delText> gone</w:delText></w:r></w:del>" +
                "<w:r><w:rPr><w:vanish/></w:rPr><w:t> hidden</w:t></w:r><w:ins><w:r><w:t>!</w:t></w:r></w:ins>" +
                "<w:r><w:t>x\u00ady\u200bz</w:t></w:r></w:p>"
        assertEquals("seen!xyz", read("a.docx", WordFiles.of(body)).text)
    }

    @Test
    fun `lists have the numbers that Word shows`() {
        val level = { at: Int, form: String, pattern: String ->
            "<w:lvl w:ilvl='$at'><w:start w:val='1'/><w:numFmt w:val='$form'/><w:lvlText w:val='$pattern'/></w:lvl>"
        }
        val levels = level(0, "decimal", "%1.") + level(1, "lowerLetter", "(%2)") + level(2, "bullet", "o")
        val numbering =
            "<w:abstractNum w:abstractNumId='1'>$levels</w:abstractNum>" +
                "<w:num w:numId='7'><w:abstractNumId w:val='1'/></w:num>"
        val item = { at: Int -> paragraph("x", "<w:numPr><w:ilvl w:val='$at'/><w:numId w:val='7'/></w:numPr>") }
        val body = item(0) + item(1) + item(2) + paragraph("between") + item(0) + item(1)
        val file = WordFiles.of(body, mapOf("word/numbering.xml" to WordFiles.root("numbering", numbering)))
        assertEquals("1. x\n   (a) x\n       - x\n\nbetween\n\n2. x\n   (a) x", read("a.docx", file).text)
    }

    @Test
    fun `parts are found by what refers to them, not by their names`() {
        val properties = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
        val core = "<Relationship Id='c' Type='$properties' Target='docProps/x.xml'/>"
        val links = WordFiles.relationships(Triple("officeDocument", "doc/main.xml", ""))
        val notes = "<w:footnote w:id='2'>${paragraph("The note.")}</w:footnote>"
        val reference = "<w:r><w:footnoteReference w:id='2'/></w:r>"
        val parts =
            mapOf(
                "_rels/.rels" to links.replace("<Relationships>", "<Relationships>$core"),
                "docProps/x.xml" to "<c:p xmlns:c='c' xmlns:dc='d'><dc:title>A\nTitle</dc:title></c:p>",
                "doc/main.xml" to WordFiles.document("<w:p><w:r><w:t>Words</w:t></w:r>$reference</w:p>"),
                "doc/_rels/main.xml.rels" to WordFiles.relationships(Triple("footnotes", "notes%201.xml", "")),
                "doc/notes 1.xml" to WordFiles.root("footnotes", notes),
                WordFiles.MAIN to "junk",
            )
        val found = read("cloud.zip", WordFiles.of("", parts, main = "doc/main.xml"))
        assertEquals("Words[1]\n\n1. The note.", found.text)
        assertEquals("A Title", found.title)
    }

    @Test
    fun `what is left out or mended is told`() {
        val embedded = WordFiles.of(paragraph("Words.") + "<w:altChunk r:id='rId0'/>", linksTo("aFChunk", "page.html"))
        assertEquals("Words.", read("a.docx", embedded).text)
        assertTold("1 of 5 parts of a.docx", embedded, "word/page.html (altChunk)")
        val damaged = WordFiles.of(paragraph("Text."), mapOf("word/styles.xml" to "junk"))
        assertEquals("Text.", read("a.docx", damaged).text)
        assertTold("1 of 4 parts of a.docx", damaged, "word/styles.xml")
        val mended = WordFiles.of(paragraph("Tom &amp; &foo; & Text."))
        assertEquals("Tom & &foo; & Text.", read("a.docx", mended).text)
        assertTold("The markup of a.docx is damaged in word/document.xml", mended, "")
        val flat = WordFiles.of(paragraph("one") + "<w:smartTag>".repeat(300) + paragraph("two") + paragraph("three"))
        assertEquals("one\n\ntwo\n\nthree", read("a.docx", flat).text)
        assertTold("The layout of a.docx", flat, "")
    }

    @Test
    fun `a link's address is the one that its relationship has`() {
        val link = "<w:hyperlink r:id='rId0'><w:r><w:t>this</w:t></w:r></w:hyperlink>"
        val far = WordFiles.relationships(Triple("hyperlink", "https://a.org/b", "External"))
        val file = WordFiles.of("<w:p>$link</w:p>", mapOf("word/_rels/document.xml.rels" to far))
        assertEquals("[this](https://a.org/b)", read("a.docx", file).text)
    }

    @Test
    fun `files of other programs are refused by their names`() {
        val office = { kind: String -> WordFiles.of("", type = "application/vnd.openxmlformats-officedocument.$kind") }
        refuses(office("spreadsheetml.sheet.main+xml"), "Excel")
        refuses(office("presentationml.presentation.main+xml"), "PowerPoint")
        val open = mapOf("mimetype" to "application/vnd.oasis.opendocument.text".toByteArray())
        refuses(WordFiles.zip(open), "OpenDocument")
        refuses("{\\rtf1 x}".toByteArray(), "RTF")
        val old = listOf(0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1, 0, 0).map(Int::toByte).toByteArray()
        refuses(old, "without a password")
        refuses("no archive".toByteArray(), "is damaged")
        refuses(WordFiles.of(""), "holds no text")
    }

    @Test
    fun `the suffix decides where an archive is two documents`() {
        val container = "<container><rootfile full-path='book.opf'/></container>"
        val lists = "<manifest><item id='a' href='a.xhtml'/></manifest><spine><itemref idref='a'/></spine>"
        val book = mapOf("book.opf" to "<package>$lists</package>", "a.xhtml" to "<html><p>chapter</p></html>")
        val both = WordFiles.of(paragraph("words"), book + (Epub.CONTAINER to container))
        assertEquals("chapter", read("a.epub", both).text)
        assertEquals("words", read("a.docx", both).text)
        val page = "<!DOCTYPE html><html><body><p>Please log in.</p></body></html>"
        assertEquals("Please log in.", read("a.docx", page.toByteArray()).text)
    }

    private fun linksTo(
        kind: String,
        target: String,
    ): Map<String, String> {
        val links = WordFiles.relationships(Triple(kind, target, ""))
        return mapOf("word/_rels/document.xml.rels" to links, "word/$target" to "<p>x")
    }

    private fun assertTold(
        start: String,
        file: ByteArray,
        word: String,
    ) {
        val line = read("a.docx", file).left?.words(app.resources).orEmpty()
        assertTrue(line, line.startsWith(start) && word in line)
    }

    private fun refuses(
        bytes: ByteArray,
        word: String,
    ) {
        val error = assertThrows(word, ProblemException::class.java) { read("a.docx", bytes) }
        val line = error.problem.words(app.resources)
        assertTrue(line, word in line && "a.docx" in line)
    }

    private fun read(
        name: String,
        bytes: ByteArray,
    ): Extracted = DocumentReader(MOST).read(name, File(folder.root, "copy").apply { writeBytes(bytes) })

    private companion object {
        const val MOST = 10_000_000L
    }
}
