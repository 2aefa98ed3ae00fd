package io.edgeinfinite.app.documents

import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import java.io.File
import java.io.IOException
import java.util.zip.ZipException
import java.util.zip.ZipFile

/**
 * A document's text.
 *
 * @property text headings are Markdown, blank lines stand between paragraphs; plain text as it stands.
 * @property guess the encoding that the text was taken for, where the file doesn't tell; else null.
 * @property left what of the document isn't in the text or isn't as the file has it; null if nothing.
 * @property title of a book or a page, as it gives it; "" if it doesn't. Not a PDF's, which is seldom right.
 */
data class Extracted(
    val text: String,
    val guess: String? = null,
    val left: Problem? = null,
    val title: String = "",
)

/**
 * Text, Markdown, HTML, EPUB and Word files as text, as Python's `runtime_py/documents` reads them; and PDFs,
 * whose library draws with Android's classes.
 *
 * @param mostBytes of text, unpacked; what is not text, such as an EPUB's pictures, doesn't count.
 */
class DocumentReader(
    private val mostBytes: Long = Runtime.getRuntime().maxMemory() / SHARE_OF_HEAP,
) {
    /**
     * Reads a document. Its contents decide what it is, then its suffix; anything else is plain text.
     *
     * @param name the document's, for its suffix and for errors.
     * @param file its contents; the file's own name doesn't count.
     * @throws ProblemException it is damaged, encrypted, of another kind, too long for this
     *   device's heap, or has no text.
     */
    fun read(
        name: String,
        file: File,
    ): Extracted {
        val extracted =
            try {
                extracted(name, file)
            } catch (error: IOException) {
                throw damaged(name, error)
            } catch (error: IllegalArgumentException) { // entries' names that are no text
                throw damaged(name, error)
            }
        if (extracted.text.isBlank()) throw ProblemException(R.string.document_blank, name)
        return extracted
    }

    /** Whether a document is plain text or Markdown, and so long that it is better read piece by piece. */
    fun isLongText(
        name: String,
        file: File,
    ): Boolean = file.length() > LONG && kindOf(name, file) == Kind.PLAIN

    private enum class Kind { PDF, OLD_OFFICE, RTF, ZIP, HTML, PLAIN }

    private fun kindOf(
        name: String,
        file: File,
    ): Kind {
        val start = file.inputStream().use { it.readUpTo(HEAD) }
        val head = String(start, Charsets.ISO_8859_1)
        val suffix = suffixOf(name)
        return when {
            isPdf(head, suffix) -> Kind.PDF
            head.startsWith(OLD_OFFICE) -> Kind.OLD_OFFICE
            head.startsWith(RTF) -> Kind.RTF
            head.startsWith(ZIP) -> Kind.ZIP
            suffix in HTML || (suffix !in PLAIN && HTML_START.containsMatchIn(head)) -> Kind.HTML
            suffix in ARCHIVES -> Kind.ZIP
            else -> Kind.PLAIN
        }
    }

    /** A PDF's header stands at its beginning, or near to it; a text may speak of it. */
    private fun isPdf(
        head: String,
        suffix: String,
    ): Boolean {
        val at = PDF.find(head)?.range?.first ?: return false
        if (suffix == "pdf") return true
        val isLine = at == 0 || head[at - 1] in "\r\n"
        return isLine && PDF_OBJECT.containsMatchIn(head.substring(at)) && (at == 0 || suffix !in TEXTS)
    }

    private fun extracted(
        name: String,
        file: File,
    ): Extracted =
        when (kindOf(name, file)) {
            Kind.PDF -> PdfText.of(name, file, mostBytes)
            Kind.OLD_OFFICE -> throw ProblemException(R.string.document_old_office, name)
            Kind.RTF -> throw ProblemException(R.string.document_other_kind, name, "RTF")
            Kind.ZIP -> readZip(name, file)
            Kind.HTML ->
                readWhole(name, file, HTML_COST) { page ->
                    HtmlText.of(name, page) { if (it > mostBytes) throw tooLong(name, mostBytes) }
                }
            Kind.PLAIN -> readWhole(name, file, 1) { PlainText.of(name, it) }
        }

    private fun readWhole(
        name: String,
        file: File,
        cost: Int,
        read: (ByteArray) -> Extracted,
    ): Extracted {
        if (file.length() > mostBytes / cost) throw tooLong(name, mostBytes / cost)
        return read(file.readBytes())
    }

    private fun readZip(
        name: String,
        file: File,
    ): Extracted =
        try {
            opened(file)?.use { readArchive(name, Archive(name, it, mostBytes)) } ?: readCut(name, file)
        } catch (error: ZipException) {
            throw damaged(name, error)
        }

    /** The archive; null if its directory is missing or damaged. */
    private fun opened(file: File): ZipFile? =
        try {
            ZipFile(file)
        } catch (_: ZipException) {
            null
        }

    /** The parts that are whole of an archive that was cut. */
    private fun readCut(
        name: String,
        file: File,
    ): Extracted {
        val whole = Salvage(name, mostBytes).of(file) ?: throw ZipException("its end is missing")
        try {
            val found = ZipFile(whole).use { readArchive(name, Archive(name, it, mostBytes)) }
            return found.copy(left = found.left ?: Problem(R.string.document_cut, listOf(name)))
        } finally {
            whole.delete()
        }
    }

    /** An archive is what its parts say; the suffix decides where it is two documents. */
    private fun readArchive(
        name: String,
        archive: Archive,
    ): Extracted {
        val isEpub = Epub.CONTAINER in archive || WordPackage.mimeTypeOf(archive) == EPUB
        val whole = WordPackage(archive)
        return when {
            isEpub && suffixOf(name) !in WORD -> Epub(name, archive, mostBytes).text()
            whole.isWord -> WordText(name, archive, whole, mostBytes).text()
            isEpub -> Epub(name, archive, mostBytes).text()
            else -> throw whole.otherKind?.let { ProblemException(R.string.document_other_kind, name, it) }
                ?: ProblemException(R.string.document_other_archive, name)
        }
    }

    private fun suffixOf(name: String) = name.substringAfterLast('.', "").lowercase()

    companion object {
        /** A text, its characters and its tokens lie in the heap together. */
        private const val SHARE_OF_HEAP = 12
        private const val HEAD = 1024
        private const val LONG = 2_000_000L
        private const val ZIP = "PK\u0003\u0004"
        private const val OLD_OFFICE = "\u00d0\u00cf\u0011\u00e0\u00a1\u00b1\u001a\u00e1"
        private const val RTF = "{\\rtf"
        private const val EPUB = "application/epub+zip"
        private const val HTML_COST = 4
        private val PDF = Regex("%PDF-\\d\\.\\d")
        private val PDF_OBJECT = Regex("\\d+\\s{1,4}\\d+\\s{1,4}obj\\s{0,9}(?:<<|[\\[(%\\d])|[\u0080-\u00ff]{4}")
        private val TEXTS = setOf("txt", "md", "markdown", "html", "htm", "xhtml")
        private val WORD = setOf("docx", "docm", "dotx", "dotm")
        private val ARCHIVES = WORD + "epub"
        private val HTML = setOf("html", "htm", "xhtml")
        private val PLAIN = setOf("txt", "md", "markdown")
        private val HTML_START =
            Regex(
                "^(?:\u00ef\u00bb\u00bf)?\\s{0,200}(?:<\\?xml[^<>]{0,200}>\\s{0,200})?" +
                    "<(?:!doctype\\s+html|html)\\b",
                RegexOption.IGNORE_CASE,
            )

        internal fun damaged(
            name: String,
            error: Exception,
        ) = ProblemException(Problem(R.string.document_damaged, listOf(name), error.message), error)

        internal fun tooLong(
            name: String,
            mostBytes: Long,
        ) = ProblemException(R.string.document_too_long, name, "${mostBytes / MEGA}")

        private const val MEGA = 1_000_000
    }
}

/** The first bytes, at most [count]. */
internal fun java.io.InputStream.readUpTo(count: Int): ByteArray {
    val bytes = ByteArray(count)
    var size = 0
    while (size < count) {
        val more = read(bytes, size, count - size)
        if (more < 0) break
        size += more
    }
    return bytes.copyOf(size)
}
