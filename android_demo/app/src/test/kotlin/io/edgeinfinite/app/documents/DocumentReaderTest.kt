package io.edgeinfinite.app.documents

import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.app
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
import java.nio.charset.Charset
import java.util.zip.CRC32
import java.util.zip.ZipEntry
import java.util.zip.ZipOutputStream

/** Documents of every kind but PDFs, for which see [PdfTextTest]. */
@RunWith(RobolectricTestRunner::class)
class DocumentReaderTest {
    @get:Rule
    val folder = TemporaryFolder()

    @Test
    fun `a text in UTF-8 stays as it is, with Unix's newlines and without a mark`() {
        val bytes = "\uFEFF# Grüße\r\n\r\n*eins*\rzwei\n".toByteArray()
        assertEquals(Extracted("# Grüße\n\n*eins*\nzwei\n"), read("a.md", bytes))
    }

    @Test
    fun `a text with a mark is read in the encoding that it names`() {
        for (encoding in listOf("UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE")) {
            val bytes = "\uFEFFGrüße 日本".toByteArray(Charset.forName(encoding))
            assertEquals(encoding, Extracted("Grüße 日本"), read("a.txt", bytes))
        }
    }

    @Test
    fun `another encoding is guessed, and the guess is told`() {
        val german = "Der Bär läuft über die Brücke, und die Füße sind naß. Schöne Grüße aus Köln und Düsseldorf!\n"
        val russian = "Широка страна моя родная, много в ней лесов, полей и рек. Я другой такой страны не знаю.\n"
        val japanese = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。\n"
        val european = listOf("windows-1252" to german, "windows-1251" to russian)
        for ((encoding, text) in european + listOf("Shift_JIS", "EUC-JP").map { it to japanese }) {
            assertEquals(Extracted(text, encoding), read("a.txt", text.toByteArray(Charset.forName(encoding))))
        }
        assertNull(read("a.txt", german.toByteArray()).guess)
    }

    @Test
    fun `HTML is read without what nobody sees, headings and lists as Markdown`() {
        val html =
            """<!doctype html><html><head><title>T</title><style>p{}</style></head><body><nav>Menu</nav>
            <h1>The   sea</h1><p>First <b>bold</b>
            line.<br>Second.</p><script>x()</script><ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul>
            <ol><li>a</li><li>b</li></ol><pre>  kept
              as is</pre><table><tr><th>x</th><th>y</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>"""
        val expected =
            """
            # The sea

            First **bold** line.
            Second.

            - one
              - inner
            - two

            1. a
            2. b

            ```
              kept
                          as is
            ```

            | x | y |
            | --- | --- |
            | 1 | 2 |
            """.trimIndent()
        assertEquals(expected, read("page.html", html.toByteArray()).text)
        assertEquals("Grüße", read("p", "<html><meta charset=iso-8859-1>Grüße".toByteArray(Charsets.ISO_8859_1)).text)
    }

    @Test
    fun `an EPUB's chapters come in the order of its spine`() {
        val text = read("book.epub", epub()).text
        assertEquals("# One\n\nFirst – chapter.\n\n# Two\n\nSecond chapter.", text)
    }

    @Test
    fun `pictures don't count, texts do`() {
        val many = ByteArray(3_000_000)
        assertTrue("One" in read("b.epub", epub(mapOf("OEBPS/p.png" to many)), mostBytes = 20_000).text)
        val bomb = epub(mapOf("OEBPS/a b/two.xhtml" to "<p>${"x".repeat(300_000)}</p>".toByteArray()))
        assertTrue(bomb.size < 20_000)
        refuses("b.epub", bomb, "more text than the 0 MB", mostBytes = 200_000)
        refuses("a.txt", ByteArray(2_000_000) { 'a'.code.toByte() }, "split it", mostBytes = 1_000_000)
    }

    @Test
    fun `what a small page becomes counts, too`() {
        val quoted = "<blockquote>".repeat(20) + "<p>x".repeat(20_000)
        refuses("a.html", quoted.toByteArray(), "split it", mostBytes = 1_000_000)
        val book = epub(mapOf("OEBPS/one.xhtml" to "$XML<html><body>$quoted</body></html>".toByteArray()))
        refuses("a.epub", book, "split it", mostBytes = 1_000_000)
        val wide = "<table>" + "<tr><td colspan=1000>x".repeat(20_000) + "</table>"
        assertTrue(read("a.html", wide.toByteArray()).text.length < 500_000)
    }

    @Test
    fun `a spine that names one chapter without end is read once, and one of too many parts isn't`() {
        val reference = "<o:itemref idref=\"a\"/>"
        val odd = String(bookOf()).replace("application/xhtml+xml", "x/y").replace(reference, reference.repeat(200_000))
        val start = System.nanoTime()
        val text = read("b.epub", epub(mapOf("OEBPS/book.opf" to odd.toByteArray()))).text
        assertEquals("# One\n\nFirst – chapter.\n\n# Two\n\nSecond chapter.", text)
        assertTrue(System.nanoTime() - start < 20_000_000_000)
        val items = (0..20_000).joinToString("") { "<item id='i$it' href='$it.xhtml'/>" }
        val references = (0..20_000).joinToString("") { "<itemref idref='i$it'/>" }
        val many = "<package><manifest>$items</manifest><spine>$references</spine></package>"
        refuses("b.epub", epub(mapOf("OEBPS/book.opf" to many.toByteArray())), "more than 20000 parts")
    }

    @Test
    fun `a page nested without end loses no word`() {
        for (tag in listOf("div", "b", "table><tr><td")) {
            val words = read("a.html", ("<p>one</p>" + "<$tag>".repeat(9_000) + "two<p>three").toByteArray()).text
            assertEquals(tag, listOf("one", "two", "three"), Regex("[a-z]+").findAll(words).map { it.value }.toList())
        }
    }

    @Test
    fun `a drawing among a book's chapters is read if it has words`() {
        for ((words, text) in listOf("<text>Drawn</text>" to "Drawn\n\n", "<path/>" to "")) {
            val book = String(bookOf()).replace("p.png\" media-type=\"image/png", "p.svg\" media-type=\"image/svg+xml")
            val spine = book.replace("<o:itemref idref=\"a\"/>", "<o:itemref idref=\"c\"/><o:itemref idref=\"a\"/>")
            val svg = "<svg xmlns='http://www.w3.org/2000/svg'>$words</svg>"
            val files = mapOf("OEBPS/book.opf" to spine.toByteArray(), "OEBPS/p.svg" to svg.toByteArray())
            assertEquals("$text# One\n\nFirst – chapter.\n\n# Two\n\nSecond chapter.", read("b.epub", epub(files)).text)
        }
    }

    @Test
    fun `an encrypted book is refused, one with obfuscated fonts is read`() {
        val method = { algorithm: String ->
            val entry = "<e:EncryptedData><e:EncryptionMethod Algorithm='$algorithm'/></e:EncryptedData>"
            val xml = "<encryption xmlns:e='x'>$entry</encryption>"
            mapOf("META-INF/encryption.xml" to xml.toByteArray())
        }
        refuses("b.epub", epub(method("http://www.w3.org/2001/04/xmlenc#aes128-cbc")), "encrypted (DRM)")
        assertTrue("One" in read("b.epub", epub(method("http://www.idpf.org/2008/embedding"))).text)
    }

    @Test
    fun `an entity of its own brings no file of the device into an EPUB's text`() {
        val secret = folder.newFile("secret").apply { writeText("SECRET") }
        val page = "<!DOCTYPE html [<!ENTITY x SYSTEM 'file://$secret'>]><html><body><p>a &x; b</p></body></html>"
        assertTrue("SECRET" !in read("b.epub", epub(mapOf("OEBPS/one.xhtml" to page.toByteArray()))).text)
    }

    @Test
    fun `UTF-8 with one bad byte is read as UTF-8 and told`() {
        for (text in listOf("Die Straße führt über die Brücke. ", "It’s a “plain” text. ", "红楼梦，第一回。")) {
            val whole = text.repeat(50).toByteArray()
            for (name in listOf("a.txt", "a.html")) {
                val found = read(name, whole + byteArrayOf(-1) + whole)
                assertEquals(1, found.text.count { it == '\uFFFD' })
                assertTrue(name, text.trim() in found.text && found.left != null && found.guess == null)
            }
            val cut = read("a.txt", whole + "schö".toByteArray().copyOf(4))
            assertTrue(cut.text.startsWith(text) && cut.left != null)
        }
    }

    @Test
    fun `UTF-16 without a mark is a guess, and a page that states nothing is UTF-8`() {
        assertEquals("Grüße aus Köln", read("a.txt", "Grüße aus Köln".toByteArray(Charsets.UTF_16LE)).text)
        val page = "<p>It was the captain’s ship.".toByteArray()
        assertEquals(Extracted("It was the captain’s ship."), read("a.html", page))
        val koi = Charset.forName("KOI8-R")
        assertEquals("Все семьи", read("a.html", "<meta charset=koi8-r><p>Все семьи".toByteArray(koi)).text)
    }

    @Test
    fun `signs above and below, formulas, notes and readings don't run into words`() {
        val lines =
            listOf(
                "10<sup>6</sup> cells" to "10^6 cells",
                "CO<sub>2</sub>." to "CO_2.",
                "x<sup>n + 1</sup>" to "x^(n + 1)",
                "the 21<sup>st</sup> of" to "the 21st of",
                "1897<sup><a href='#n'>12</a></sup> he" to "1897[12] he",
                "is <math><mn>5</mn></math> kg" to "is 5 kg",
                "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mi>b</mi></mfrac></math>" to "(a+1)/b",
                "<math><mi>E</mi><mo>=</mo><msup><mi>c</mi><mn>2</mn></msup></math>" to "E=c^2",
                "<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>です" to "漢字です",
                "Ge&shy;samt, ze&#8203;ro, \uFEFFmark, o\uFB03ce" to "Gesamt, zero, mark, office",
                "می\u200Cخواهم" to "می\u200Cخواهم",
                "\uD83D\uDC68\u200D\uD83D\uDC69" to "\uD83D\uDC68\u200D\uD83D\uDC69",
                "see <a href='https://a.org/b'>this</a>, <a href='#c'>that</a>" to "see [this](https://a.org/b), that",
            )
        for ((html, text) in lines) assertEquals(text, read("a.html", "<p>$html</p>".toByteArray()).text)
        for (tag in listOf("center", "aside", "summary", "dialog", "address", "hgroup")) {
            val words = read("a.html", "<div><$tag>One</$tag><$tag>Two</$tag>three</div>".toByteArray()).text
            assertEquals(tag, listOf("One", "Two", "three"), words.lines().filter(String::isNotBlank))
        }
    }

    @Test
    fun `time is linear in the page`() {
        val pages =
            listOf(
                "<pre>" + " ".repeat(500_000) + "x</pre>",
                "<p>a" + "&nbsp; ".repeat(100_000) + "x",
                "<ol>" + "<li>x".repeat(30_000),
                "<table><tr>" + "<td colspan=1000>x".repeat(30_000),
                "<p>" + "<sup>x</sup>".repeat(30_000),
            )
        for (page in pages) {
            val start = System.nanoTime()
            assertTrue("x" in read("a.html", page.toByteArray()).text)
            assertTrue(page.take(20), System.nanoTime() - start < 15_000_000_000)
        }
    }

    @Test
    fun `a damaged chapter is left out and told, and one that is named again is read once`() {
        val stored = epub(method = ZipEntry.STORED)
        val at = String(stored, Charsets.ISO_8859_1).indexOf("First ")
        val found = read("b.epub", stored.apply { this[at] = 'f'.code.toByte() })
        assertEquals("# Two\n\nSecond chapter.", found.text)
        val line = found.left?.words(app.resources).orEmpty()
        assertTrue(line, "2 of 3 parts of b.epub" in line && "OEBPS/one.xhtml (its checksum is wrong)" in line)
        val reference = "<o:itemref idref=\"a\"/>"
        val book = String(bookOf(), Charsets.UTF_8).replace(reference, reference.repeat(200))
        val again = read("b.epub", epub(mapOf("OEBPS/book.opf" to book.toByteArray())))
        assertEquals("# One\n\nFirst – chapter.\n\n# Two\n\nSecond chapter.", again.text)
        val odd = String(bookOf(), Charsets.UTF_8).replace("application/xhtml+xml", "Text/X-oeb1-document")
        assertEquals(again.text, read("b.epub", epub(mapOf("OEBPS/book.opf" to odd.toByteArray()))).text)
    }

    @Test
    fun `of a book that was cut the whole parts are read, and that is said`() {
        val book = String(bookOf()).replace("<o:itemref idref=\"gone\"/>", "").toByteArray()
        for (method in listOf(ZipEntry.DEFLATED, ZipEntry.STORED)) {
            val whole = epub(mapOf("OEBPS/book.opf" to book), method)
            val marks = String(whole, Charsets.ISO_8859_1)
            val found = read("b.epub", whole.copyOf(marks.indexOf("PK\u0001\u0002") + 20))
            assertEquals("# One\n\nFirst – chapter.\n\n# Two\n\nSecond chapter.", found.text)
            assertEquals("The end of b.epub is missing or damaged: only the parts before it are read.", line(found))
            val half = read("b.epub", whole.copyOf(marks.indexOf("OEBPS/one.xhtml") + 30))
            assertEquals("# Two\n\nSecond chapter.", half.text)
            assertTrue(line(half), "1 of 2 parts" in line(half) && "OEBPS/one.xhtml" in line(half))
            refuses("b.epub", whole.copyOf(20), "is damaged")
        }
        val changed = epub(mapOf("OEBPS/book.opf" to book), ZipEntry.STORED)
        val marks = String(changed, Charsets.ISO_8859_1)
        changed[marks.indexOf("Second")] = 'X'.code.toByte()
        val left = read("b.epub", changed.copyOf(marks.indexOf("PK\u0001\u0002")))
        assertEquals("# One\n\nFirst – chapter.", left.text)
        val bomb = epub(mapOf("OEBPS/one.xhtml" to ByteArray(20_000_000) { ' '.code.toByte() }))
        refuses("b.epub", bomb.copyOf(bomb.size - 60), "has more text than")
    }

    private fun line(found: Extracted) = found.left?.words(app.resources).orEmpty()

    @Test
    fun `what a spine names that is no text is told`() {
        val items = "<o:item id='pdf' href='x.pdf' media-type='application/pdf'/></o:manifest>"
        val more = "<o:itemref idref='nowhere'/><o:itemref idref='pdf'/></o:package>"
        val book = String(bookOf()).replace("</o:manifest>", items).replace("</o:spine></o:package>", more)
        val files = mapOf("OEBPS/book.opf" to book.replace("</o:package>", "</o:spine></o:package>").toByteArray())
        val found = read("b.epub", epub(files + ("OEBPS/x.pdf" to "%PDF-1.7".toByteArray())))
        assertEquals("# One\n\nFirst – chapter.\n\n# Two\n\nSecond chapter.", found.text)
        val line = found.left?.words(app.resources).orEmpty()
        assertTrue(line, "3 of 5 parts" in line && "nowhere, OEBPS/x.pdf (application/pdf)" in line)
    }

    @Test
    fun `an encrypted chapter is left out and told, and a book of such chapters is refused`() {
        val entry = { path: String ->
            "<EncryptedData><EncryptionMethod Algorithm='aes'/><CipherReference URI='$path'/></EncryptedData>"
        }
        val xml = { paths: List<String> -> "<encryption>${paths.joinToString("", transform = entry)}</encryption>" }
        val one = mapOf("META-INF/encryption.xml" to xml(listOf("OEBPS/one.xhtml")).toByteArray())
        val found = read("b.epub", epub(one))
        assertEquals("# Two\n\nSecond chapter.", found.text)
        val line = found.left?.words(app.resources).orEmpty()
        assertTrue(line, "OEBPS/one.xhtml (DRM)" in line)
        val all = xml(listOf("OEBPS/one.xhtml", "OEBPS/gone.xhtml", "OEBPS/a%20b/two.xhtml"))
        refuses("b.epub", epub(mapOf("META-INF/encryption.xml" to all.toByteArray())), "encrypted (DRM)")
    }

    @Test
    fun `a book without its package comes in the order of its parts' names`() {
        val text = read("b.epub", epub(mapOf("OEBPS/book.opf" to "junk".toByteArray()))).text
        assertEquals("# Two\n\nSecond chapter.\n\nContents\n\n# One\n\nFirst – chapter.", text)
    }

    @Test
    fun `a text that speaks of a PDF is a text`() {
        val text = "A PDF begins with %PDF-1.7.\n%PDF-1.7 is how."
        assertEquals(text, read("a.txt", text.toByteArray()).text)
        assertEquals("%PDF-1.7 it is", read("a.txt", "%PDF-1.7 it is".toByteArray()).text)
    }

    @Test
    fun `anything else is refused in one line`() {
        refuses("a.zip", zip(mapOf("a.txt" to byteArrayOf(1))), "neither EPUB nor Word")
        refuses("a.epub", epub().copyOf(200), "is damaged")
        refuses("a.epub", zip(mapOf(Epub.CONTAINER to "<a/>".toByteArray())), "names no book")
        refuses("photo.jpg", byteArrayOf(-1, -40, 0, 7), "no document of a kind")
        refuses("a.txt", byteArrayOf(-1, -2, 0, 0xD8.toByte()), "says that it is UTF-16LE")
        refuses("a.bin", byteArrayOf(0x01, 0x02, 0x81.toByte(), 0x1F), "")
        refuses("empty.txt", ByteArray(0), "holds no text")
        refuses("empty.html", "<p> </p>".toByteArray(), "holds no text")
    }

    private fun refuses(
        name: String,
        bytes: ByteArray,
        word: String,
        mostBytes: Long = MOST,
    ) {
        val error = assertThrows(name, ProblemException::class.java) { read(name, bytes, mostBytes) }
        val line = error.problem.words(app.resources)
        assertTrue(line, word in line && name in line && line.none(Char::isISOControl))
    }

    private fun read(
        name: String,
        bytes: ByteArray,
        mostBytes: Long = MOST,
    ): Extracted = DocumentReader(mostBytes).read(name, File(folder.root, "copy").apply { writeBytes(bytes) })

    private fun bookOf(): ByteArray {
        val type = "media-type='application/xhtml+xml'"
        val book =
            """<?xml version="1.0"?><o:package xmlns:o="http://www.idpf.org/2007/opf"><o:manifest>
            <o:item id="n" href="nav.xhtml" properties="nav" $type/><o:item id="c" href="p.png" media-type="image/png"/>
            <o:item id="b" href="./a%20b/two.xhtml" $type/><o:item id="a" href="x/../one.xhtml" $type/>
            <o:item id="gone" href="gone.xhtml" $type/></o:manifest>
            <o:spine><o:itemref idref="n"/><o:itemref idref="a"/><o:itemref idref="gone"/><o:itemref idref="b"/>
            </o:spine></o:package>"""
        return book.toByteArray()
    }

    private fun epub(
        more: Map<String, ByteArray> = emptyMap(),
        method: Int = ZipEntry.DEFLATED,
    ): ByteArray {
        val container = "<container><rootfiles><rootfile full-path='OEBPS/book.opf'/></rootfiles></container>"
        val files =
            linkedMapOf(
                Epub.CONTAINER to container.toByteArray(),
                "OEBPS/book.opf" to bookOf(),
                "OEBPS/nav.xhtml" to "<html><body>Contents</body></html>".toByteArray(),
                "OEBPS/a b/two.xhtml" to "<html><body><h1>Two</h1><p>Second chapter.</p></body></html>".toByteArray(),
                "OEBPS/one.xhtml" to
                    "$XML<html><head/><body><h1>One</h1><p>First – chapter.</p></body></html>".toByteArray(),
            )
        return zip(files + more, method)
    }

    private fun zip(
        files: Map<String, ByteArray>,
        method: Int = ZipEntry.DEFLATED,
    ): ByteArray {
        val bytes = java.io.ByteArrayOutputStream()
        ZipOutputStream(bytes).use { zip ->
            for ((name, data) in files) {
                val entry = ZipEntry(name).apply { this.method = method }
                entry.size = data.size.toLong()
                entry.crc = CRC32().apply { update(data) }.value
                zip.putNextEntry(entry)
                zip.write(data)
            }
        }
        return bytes.toByteArray()
    }

    private companion object {
        const val MOST = 10_000_000L
        const val XML = "<?xml version='1.0' encoding='UTF-8'?>"
    }
}
