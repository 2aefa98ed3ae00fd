package io.edgeinfinite.app.documents

import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.R
import org.jsoup.nodes.Document
import org.jsoup.nodes.Element
import org.jsoup.parser.Parser
import org.jsoup.parser.StreamParser
import java.io.IOException
import java.util.zip.ZipException

/**
 * A Word file (.docx): text, headings, lists, tables, formulas and notes; as Python's `docx.py`.
 *
 * @param name the document's, for errors.
 * @param archive its parts.
 * @param whole the same, by the rules of Office's files.
 * @param mostBytes of the text.
 */
internal class WordText(
    private val name: String,
    private val archive: Archive,
    private val whole: WordPackage,
    private val mostBytes: Long,
) {
    private val left = ArrayList<String>()
    private val mended = LinkedHashSet<String>()
    private val main = whole.mainPart.orEmpty()
    private val links = whole.relationships(main)
    private val byId = links.associateBy { it.id }
    private val paths = PARTS.associateWith(::pathOf)

    /** Elements and characters that were read. */
    private var spent = 0L

    /**
     * The text; parts that are damaged and documents within this one are left out and told.
     *
     * @throws io.edgeinfinite.app.ProblemException it is too long.
     * @throws IOException its main part is missing or damaged.
     */
    fun text(): Extracted {
        val bytes = archive.bytes(main) ?: throw ZipException("it has no main part")
        val decoded = TextDecoder.decoded(name, bytes, EncodingNames.stated(bytes))
        val page =
            try {
                pageOf(decoded.text)
            } catch (_: TooDeepException) {
                null
            }
        val text = page?.let { HtmlText.of(it) { count -> check(count) } } ?: CleanText.tidied(paragraphs(decoded.text))
        return Extracted(text, decoded.guess, problem(page == null) ?: decoded.left, title())
    }

    private fun problem(isFlat: Boolean): Problem? =
        when {
            isFlat -> Problem(R.string.document_flat, listOf(name))
            left.isNotEmpty() -> {
                val told = listOf(name, "${left.size}", "${archive.paths.size}", left.take(NAMED).joinToString())
                Problem(R.string.document_left, told)
            }
            mended.isNotEmpty() -> Problem(R.string.document_mended, listOf(name, mended.take(NAMED).joinToString()))
            else -> null
        }

    private fun check(characters: Long) {
        if (characters > mostBytes) throw DocumentReader.tooLong(name, mostBytes)
    }

    private fun pathOf(kind: String): String {
        val stated = links.firstOrNull { it.kind == kind && !it.isExternal }?.target
        return stated ?: Archive.resolved(main.substringBeforeLast('/', ""), "$kind.xml")
    }

    /** The root of a part; null, and told, if it can't be read; null if there is none. */
    private fun root(kind: String): Element? {
        val path = paths.getValue(kind)
        if (path !in archive) return null
        val root =
            try {
                archive.xml(path)?.firstElementChild()
            } catch (_: IOException) {
                null
            }
        if (root == null) left += path
        return root
    }

    private fun pageOf(xml: String): Document? {
        val numbering = root("numbering")
        val styles = root("styles")
        val outlines = WordStyles(styles, numbering)
        val noteParts = NOTES.mapNotNull { kind -> root(kind)?.let { kind to it } }.toMap()
        val notes = WordNotes(noteParts)
        val body = Piece("div")
        val numbers = numbering?.let { WordNumbers(it, styles) }
        val reader = WordBody(outlines, numbers, addresses(links), notes, ::embedded, ::spend)
        if (!readBody(xml, reader, body)) return null
        val list = Piece("ol")
        val readers =
            noteParts.keys.associateWith { kind ->
                val known = addresses(whole.relationships(paths.getValue(kind)))
                WordBody(outlines, null, known, notes, ::embedded, ::spend)
            }
        for (note in notes.referred) {
            val item = Piece("li", isKept = true)
            for (child in note.element.children()) readers.getValue(note.part).read(child, item)
            list.add(item)
        }
        body.add(list)
        return Document.createShell("").apply { body().appendChild(body.element()) }
    }

    private fun spend(count: Int) {
        spent += count
        check(spent)
    }

    private fun addresses(links: List<WordPackage.Relationship>): Map<String, String> =
        links.filter { it.kind == "hyperlink" }.associate { it.id to it.target }

    private fun embedded(id: String) {
        val path = byId[id]?.target.orEmpty()
        left += "$path (altChunk)".trim()
    }

    /**
     * Reads the body's elements one by one, so that the markup of a long text never lies in memory as a whole.
     *
     * @return false if there is nothing in it.
     */
    private fun readBody(
        xml: String,
        reader: WordBody,
        into: Piece,
    ): Boolean {
        var hasBody = false
        parsed(xml) { element ->
            val parent = element.parent()
            if (parent?.local == "body" && parent.parent()?.local == "document") {
                hasBody = true
                reader.read(element, into)
                element.remove()
            }
        }
        return hasBody
    }

    /** The paragraphs' text without layout. */
    private fun paragraphs(xml: String): String {
        val text = StringBuilder()
        parsed(xml) { element ->
            when (element.local) {
                "t" -> text.append(element.wholeText())
                "tab" -> text.append('\t')
                "br", "cr" -> text.append('\n')
                "p" -> text.append("\n\n")
            }
            check(text.length.toLong())
            element.remove()
        }
        return text.lines().joinToString("\n") { it.trim('\t') }
    }

    /** Gives each element of a part when it is complete. */
    private fun parsed(
        xml: String,
        take: (Element) -> Unit,
    ) {
        val parser = Parser.xmlParser().setTrackErrors(1)
        StreamParser(parser).use { stream ->
            for (element in stream.parse(xml, "").iterator()) take(element)
        }
        if (parser.errors.isNotEmpty()) mended += main
    }

    private fun title(): String {
        val own = whole.relationships(WordPackage.ROOT).firstOrNull { it.kind == "core-properties" }?.target
        val root = archive.xmlIfWhole(own ?: "docProps/core.xml")
        return CleanText.oneLine(root?.allNamed("title")?.firstOrNull()?.wholeText().orEmpty())
    }

    private companion object {
        val NOTES = listOf("footnotes", "endnotes")
        val PARTS = NOTES + listOf("numbering", "styles")
        const val NAMED = 3
    }
}
