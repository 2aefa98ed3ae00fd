package io.edgeinfinite.app.documents

import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import org.jsoup.Jsoup
import org.jsoup.nodes.Document
import org.jsoup.parser.Parser
import java.io.ByteArrayInputStream
import java.io.ByteArrayOutputStream
import java.net.URLDecoder
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

    /**
     * All chapters, with blank lines between them. Those that the file lacks are left out.
     *
     * @throws ProblemException the book is encrypted, damaged or too long.
     */
    fun text(): String {
        checkReadable()
        val path = parsed(CONTAINER)?.selectFirst("*|rootfile")?.attr("full-path")
        val book = path?.let(::parsed) ?: throw ZipException("it names no book")
        val text = StringBuilder()
        for (page in spine(book, path.substringBeforeLast('/', ""))) {
            val chapter = bytes(page)?.let(HtmlText::of).orEmpty()
            if (chapter.isBlank()) continue
            if (text.isNotEmpty()) text.append("\n\n")
            text.append(chapter)
        }
        return text.toString()
    }

    /** Publishers may obfuscate fonts without encrypting the text. */
    private fun checkReadable() {
        val methods = parsed(ENCRYPTION)?.select("*|EncryptionMethod").orEmpty()
        if (methods.any { it.attr("Algorithm") !in FONTS_ONLY }) {
            throw ProblemException(R.string.document_drm, name)
        }
    }

    /** The pages' paths in reading order, without the table of contents. */
    private fun spine(
        book: Document,
        folder: String,
    ): List<String> {
        val items =
            book
                .select("*|manifest > *|item")
                .filter { it.attr("media-type") in PAGES && "nav" !in it.attr("properties").split(' ') }
                .associateBy { it.attr("id") }
        return book
            .select("*|spine > *|itemref")
            .mapNotNull { items[it.attr("idref")] }
            .map { resolved(folder, it.attr("href").substringBefore('#')) }
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

    private fun parsed(path: String): Document? =
        bytes(path)?.let { Jsoup.parse(ByteArrayInputStream(it), null, "", Parser.xmlParser()) }

    /** An entry's contents, null if there is none. Counts what comes out, whatever the archive says. */
    private fun bytes(path: String): ByteArray? {
        val entry = zip.getEntry(path)?.takeIf { !it.isDirectory } ?: return null
        val bytes = ByteArrayOutputStream()
        val block = ByteArray(1 shl 14)
        zip.getInputStream(entry).use { stream ->
            while (true) {
                val count = stream.read(block)
                if (count < 0) break
                read += count
                if (read > mostBytes) throw DocumentReader.tooLong(name, mostBytes)
                bytes.write(block, 0, count)
            }
        }
        return bytes.toByteArray()
    }

    companion object {
        /** What makes an archive an EPUB. */
        const val CONTAINER = "META-INF/container.xml"
        private const val ENCRYPTION = "META-INF/encryption.xml"
        private val PAGES = setOf("application/xhtml+xml", "text/html")
        private val FONTS_ONLY = setOf("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
    }
}
