package io.edgeinfinite.app.documents

import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import org.jsoup.Jsoup
import org.jsoup.nodes.Document
import org.jsoup.parser.Parser
import java.io.ByteArrayInputStream
import java.io.ByteArrayOutputStream
import java.io.IOException
import java.net.URLDecoder
import java.text.Normalizer
import java.util.zip.CRC32
import java.util.zip.ZipException
import java.util.zip.ZipFile

/**
 * An EPUB: the chapters in the order of the book's spine, read one by one.
 *
 * @param name the book's, for errors.
 * @param mostBytes of all chapters, unpacked.
 */
internal class Epub(
    private val name: String,
    private val zip: ZipFile,
    private val mostBytes: Long,
) {
    private var read = 0L
    private var guess: String? = null
    private val left = ArrayList<String>()
    private val entries = zip.entries().asSequence().associateBy { plain(it.name) }
    private val packagePath by lazy(::findPackage)
    private val book by lazy { packagePath?.let(::parsedIfWhole) }

    /**
     * All chapters, with blank lines between them. Those that the file lacks or that are damaged are left out and told.
     *
     * @throws ProblemException the book is encrypted, damaged or too long.
     */
    fun text(): Extracted {
        val locked = locked()
        val pages = pages()
        if (pages.isNotEmpty() && pages.all { plain(it) in locked }) throw ProblemException(R.string.document_drm, name)
        val total = pages.size + left.size
        val text = StringBuilder()
        if (pages.size > MOST_PARTS) throw ProblemException(R.string.document_too_many_parts, name, "$MOST_PARTS")
        for (page in pages) {
            val chapter = if (plain(page) in locked) "" else chapter(page, text.length)
            if (plain(page) in locked) left += "$page (DRM)"
            if (chapter.isBlank()) continue
            if (text.isNotEmpty()) text.append("\n\n")
            text.append(chapter)
        }
        val told = listOf(name, "${left.size}", "$total", left.take(NAMED).joinToString())
        val problem = if (left.isEmpty()) null else Problem(R.string.document_left, told)
        return Extracted(text.toString(), guess, problem, title())
    }

    private fun title() = CleanText.oneLine(book?.selectFirst("*|metadata *|title")?.text().orEmpty())

    /** @param before characters of the chapters before it. */
    private fun chapter(
        page: String,
        before: Int,
    ): String =
        try {
            val bytes = bytes(page)
            if (bytes == null) left += page
            bytes?.let { HtmlText.of(page, it) { count -> check(before + count) } }?.let {
                guess = guess ?: it.guess
                it.text
            }
        } catch (error: IOException) {
            left += "$page (${error.message})"
            null
        } catch (error: ProblemException) {
            if (error.problem.text == R.string.document_too_long) throw error
            left += page
            null
        }.orEmpty()

    private fun check(characters: Long) {
        if (characters > mostBytes) throw DocumentReader.tooLong(name, mostBytes)
    }

    private fun findPackage(): String? {
        val stated = parsedIfWhole(CONTAINER)?.selectFirst("*|rootfile")?.attr("full-path")
        return stated?.takeIf { plain(it) in entries } ?: entries.keys.filter { it.endsWith(".opf") }.minOrNull()
    }

    /** The chapters in the order of the book's package, or of their names if it has none. */
    private fun pages(): List<String> {
        val folder = packagePath.orEmpty().substringBeforeLast('/', "")
        val found = book?.let { spine(it, folder) }.orEmpty()
        if (found.isNotEmpty() || left.isNotEmpty()) return found
        return byName().ifEmpty { throw ZipException("it names no book") }
    }

    private fun byName(): List<String> =
        entries.values.map { it.name }.filter { it.substringAfterLast('.').lowercase() in SUFFIXES }.sorted()

    /**
     * Parts that are encrypted, as names are compared. Publishers may obfuscate fonts without encrypting the text.
     *
     * @throws ProblemException it doesn't say which, so all may be.
     */
    private fun locked(): Set<String> {
        val found = HashSet<String>()
        for (entry in parsedIfWhole(ENCRYPTION)?.select("*|EncryptedData").orEmpty()) {
            if (entry.select("*|EncryptionMethod").all { it.attr("Algorithm") in FONTS_ONLY }) continue
            val paths = entry.select("*|CipherReference").map { plain(resolved("", it.attr("URI"))) }
            if (paths.isEmpty()) throw ProblemException(R.string.document_drm, name)
            found += paths
        }
        return found
    }

    /** The pages' paths in reading order, each once, without the table of contents; what is no page is told. */
    private fun spine(
        book: Document,
        folder: String,
    ): List<String> {
        val items = book.select("*|manifest > *|item").associateBy { it.attr("id") }
        val order = book.select("*|spine > *|itemref")
        order.filter { it.attr("idref") !in items }.mapTo(left) { it.attr("idref") }
        val named = if (order.isEmpty()) items.values else order.mapNotNull { items[it.attr("idref")] }
        return named
            .filter { "nav" !in it.attr("properties").split(' ') }
            .map { it to resolved(folder, it.attr("href").substringBefore('#')) }
            .distinctBy { plain(it.second) }
            .filter { (item, path) ->
                val kind = item.attr("media-type").substringBefore(';').trim().lowercase()
                val isPage = isPage(kind, path)
                val isTold = order.isNotEmpty() && (kind == SVG || !kind.startsWith("image/"))
                if (!isPage && isTold) left.add("$path ($kind)")
                isPage
            }.map { it.second }
    }

    /** By what the book says, the suffix, or the contents. */
    private fun isPage(
        kind: String,
        path: String,
    ): Boolean {
        if (kind in PAGES || path.substringAfterLast('.').lowercase() in SUFFIXES) return true
        if (kind != SVG && NO_PAGES.any(kind::startsWith)) return false
        return try {
            val bytes = bytes(path) ?: return true
            val text = String(bytes, Charsets.ISO_8859_1)
            val isDrawing = "<svg" in text && "<html" !in text && "<text" !in text
            text.removePrefix("\u00ef\u00bb\u00bf").trimStart().startsWith('<') && !isDrawing
        } catch (_: IOException) {
            true // it is told when it is read
        }
    }

    private fun resolved(
        folder: String,
        href: String,
    ): String {
        val path = ArrayList<String>()
        val plain = URLDecoder.decode(href.replace("+", "%2B"), "UTF-8")
        for (part in "$folder/$plain".split('/')) {
            when (part) {
                "", "." -> Unit
                ".." -> if (path.isNotEmpty()) path.removeAt(path.lastIndex)
                else -> path += part
            }
        }
        return path.joinToString("/")
    }

    /** A damaged part is as one that is missing. */
    private fun parsedIfWhole(path: String): Document? =
        try {
            parsed(path)
        } catch (_: IOException) {
            null
        }

    private fun parsed(path: String): Document? =
        bytes(path)?.let { Jsoup.parse(ByteArrayInputStream(it), null, "", Parser.xmlParser()) }

    /** An entry's contents, null if there is none. Counts what comes out, whatever the archive says. */
    private fun bytes(path: String): ByteArray? {
        val entry = entries[plain(path)]?.takeIf { !it.isDirectory } ?: return null
        val sum = CRC32()
        val bytes = ByteArrayOutputStream()
        val block = ByteArray(1 shl 14)
        zip.getInputStream(entry).use { stream ->
            while (true) {
                val count = stream.read(block)
                if (count < 0) break
                read += count
                if (read > mostBytes) throw DocumentReader.tooLong(name, mostBytes)
                sum.update(block, 0, count)
                bytes.write(block, 0, count)
            }
        }
        if (entry.crc >= 0 && entry.crc != sum.value) throw ZipException("its checksum is wrong")
        return bytes.toByteArray()
    }

    /** How names are compared: books are made on systems of different habits. */
    private fun plain(path: String) =
        Normalizer.normalize(path.replace('\\', '/').trimStart('/'), Normalizer.Form.NFC).lowercase()

    companion object {
        /** What makes an archive an EPUB. */
        const val CONTAINER = "META-INF/container.xml"
        private const val ENCRYPTION = "META-INF/encryption.xml"
        private const val NAMED = 3
        private const val SVG = "image/svg+xml"
        private const val MOST_PARTS = 20_000
        private val SUFFIXES = setOf("xhtml", "html", "htm", "xht")
        private val NO_PAGES =
            listOf("image/", "audio/", "video/", "font/", "text/css", "application/pdf", "application/x-dtbncx+xml")
        private val PAGES = setOf("application/xhtml+xml", "text/html")
        private val FONTS_ONLY = setOf("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
    }
}
