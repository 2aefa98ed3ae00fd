package io.edgeinfinite.app.documents

import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import io.edgeinfinite.app.documents.Archive.Companion.plain
import io.edgeinfinite.app.documents.Archive.Companion.resolved
import org.jsoup.nodes.Document
import org.jsoup.nodes.Element
import java.io.IOException
import java.util.zip.ZipException

/**
 * An EPUB: the chapters in the order of the book's spine, read one by one.
 *
 * @param name the book's, for errors.
 * @param archive its parts.
 * @param mostBytes of all chapters' text.
 */
internal class Epub(
    private val name: String,
    private val archive: Archive,
    private val mostBytes: Long,
) {
    private var guess: String? = null
    private val left = ArrayList<String>()
    private val sheets = HashMap<String, String>()
    private val packagePath by lazy(::findPackage)
    private val book by lazy { packagePath?.let(archive::xmlIfWhole) }

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
            val bytes = archive.bytes(page)
            if (bytes == null) left += page
            val folder = page.substringBeforeLast('/', "")
            val sheets = { href: String -> sheet(folder, href) }
            val found = bytes?.let { HtmlText.of(page, it, sheets) { count -> check(before + count) } }
            guess = guess ?: found?.guess
            found?.text
        } catch (error: IOException) {
            left += "$page (${error.message})"
            null
        } catch (error: ProblemException) {
            if (error.problem.text == R.string.document_too_long) throw error
            left += page
            null
        }.orEmpty()

    /** A style sheet's text, "" where it is missing or damaged: it says how text looks, not what. */
    private fun sheet(
        folder: String,
        reference: String,
    ): String =
        sheets.getOrPut(resolved(folder, reference)) {
            try {
                archive.bytes(resolved(folder, reference))?.let { String(it, Charsets.UTF_8) }.orEmpty()
            } catch (_: IOException) {
                ""
            }
        }

    private fun check(characters: Long) {
        if (characters > mostBytes) throw DocumentReader.tooLong(name, mostBytes)
    }

    private fun findPackage(): String? {
        val stated = archive.xmlIfWhole(CONTAINER)?.selectFirst("*|rootfile")?.attr("full-path")
        return stated?.takeIf { it in archive } ?: archive.paths.filter { it.lowercase().endsWith(".opf") }.minOrNull()
    }

    /** The chapters in the order of the book's package, or of their names if it has none. */
    private fun pages(): List<String> {
        val folder = packagePath.orEmpty().substringBeforeLast('/', "")
        val found = book?.let { spine(it, folder) }.orEmpty()
        if (found.isNotEmpty() || left.isNotEmpty()) return found
        return byName().ifEmpty { throw ZipException("it names no book") }
    }

    private fun byName(): List<String> =
        archive.paths.filter { it.substringAfterLast('.').lowercase() in SUFFIXES }.sorted()

    /**
     * Parts that are encrypted, as names are compared. Publishers may obfuscate fonts without encrypting the text.
     *
     * @throws ProblemException it doesn't say which, so all may be.
     */
    private fun locked(): Set<String> {
        val found = HashSet<String>()
        for (entry in archive.xmlIfWhole(ENCRYPTION)?.select("*|EncryptedData").orEmpty()) {
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
        val items = book.select("*|manifest > *|item").groupBy { it.attr("id") }
        val order = book.select("*|spine > *|itemref")
        order.filter { it.attr("idref") !in items }.mapTo(left) { it.attr("idref") }
        val names = if (order.isEmpty()) items.keys else order.map { it.attr("idref") }.distinct()
        return names
            .flatMap { meant(items[it].orEmpty(), folder) }
            .filter { "nav" !in it.attr("properties").split(' ') }
            .map { it to pathOf(it, folder) }
            .distinctBy { plain(it.second) }
            .filter { (item, path) ->
                val kind = kindOf(item)
                val isPage = isPage(kind, path)
                val isTold = order.isNotEmpty() && (kind == SVG || !kind.startsWith("image/"))
                if (!isPage && isTold) left.add("$path ($kind)")
                isPage
            }.map { it.second }
    }

    /** The parts of one name, as some books have them: of several the pages, where any of them is one. */
    private fun meant(
        items: List<Element>,
        folder: String,
    ): List<Element> {
        val pages = if (items.size > 1) items.filter { isPage(kindOf(it), pathOf(it, folder)) } else emptyList()
        return pages.ifEmpty { items }
    }

    private fun pathOf(
        item: Element,
        folder: String,
    ) = resolved(folder, item.attr("href").substringBefore('#'))

    private fun kindOf(item: Element) = item.attr("media-type").substringBefore(';').trim().lowercase()

    /** By what the book says, the suffix, or the contents. */
    private fun isPage(
        kind: String,
        path: String,
    ): Boolean {
        if (kind in PAGES || path.substringAfterLast('.').lowercase() in SUFFIXES) return true
        if (kind != SVG && NO_PAGES.any(kind::startsWith)) return false
        return try {
            val bytes = archive.bytes(path) ?: return true
            val text = String(bytes, Charsets.ISO_8859_1)
            val isDrawing = "<svg" in text && "<html" !in text && "<text" !in text
            text.removePrefix("\u00ef\u00bb\u00bf").trimStart().startsWith('<') && !isDrawing
        } catch (_: IOException) {
            true // it is told when it is read
        }
    }

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
