package io.edgeinfinite.app.documents

import org.jsoup.nodes.Document
import java.io.IOException

/** Office files' own rules (Open Packaging Conventions): parts are found by relationships; as Python's `opc.py`. */
internal class WordPackage(
    private val archive: Archive,
) {
    /**
     * Where a part refers to.
     *
     * @property id within the part that refers.
     * @property kind the last word of its type, which is the same in the strict and the transitional format.
     * @property target a path in the archive, or an address if [isExternal].
     */
    class Relationship(
        val id: String,
        val kind: String,
        val target: String,
        val isExternal: Boolean,
    )

    /** The path of the part that the package is about; null if there is none. */
    val mainPart: String? by lazy {
        val stated = relationships(ROOT).filter { it.kind == "officeDocument" && !it.isExternal }.map { it.target }
        (stated + MAIN).firstOrNull { it in archive }
    }

    /** The relationships of a part or of [ROOT]; none if they are missing or damaged. */
    fun relationships(source: String): List<Relationship> {
        val folder = source.substringBeforeLast('/', "")
        val path = Archive.resolved(folder, "_rels/${source.substringAfterLast('/')}.rels")
        return archive.xmlIfWhole(path)?.allNamed("Relationship").orEmpty().map { one ->
            val isExternal = one.attr("TargetMode").equals("external", ignoreCase = true)
            val target = one.attr("Target")
            val kind = one.attr("Type").trimEnd('/').substringAfterLast('/')
            Relationship(one.attr("Id"), kind, if (isExternal) target else Archive.resolved(folder, target), isExternal)
        }
    }

    /** Whether it is a Word document, whatever its parts are called. */
    val isWord: Boolean
        get() {
            val path = mainPart ?: return false
            val kind = kindOfMain()
            val isOther = OTHERS.any { (word) -> word in kind }
            return "wordprocessingml" in kind || "ms-word" in kind || (!isOther && "word/" in path.lowercase())
        }

    /** The program whose file an Office or OpenDocument file is that is no Word document; null if it is neither. */
    val otherKind: String?
        get() {
            val kind = kindOfMain()
            val mimeType = mimeTypeOf(archive)
            val other = OTHERS.firstOrNull { (word) -> word in kind }?.second
            return other ?: if ("opendocument" in mimeType) "OpenDocument" else null
        }

    /** What the package says that the main part is; "" if nothing. */
    private fun kindOfMain(): String {
        val path = mainPart ?: return ""
        val types: Document = archive.xmlIfWhole("[Content_Types].xml") ?: return ""
        val own =
            types.allNamed("Override").firstOrNull {
                Archive.plain(Archive.resolved("", it.attr("PartName"))) == Archive.plain(path)
            }
        val suffix = path.substringAfterLast('.')
        val ofSuffix = types.allNamed("Default").firstOrNull { it.attr("Extension").equals(suffix, ignoreCase = true) }
        return (own ?: ofSuffix)?.attr("ContentType").orEmpty().lowercase()
    }

    companion object {
        /** The package itself, as the source of relationships. */
        const val ROOT = ""
        private const val MAIN = "word/document.xml"
        private val OTHERS =
            listOf(
                "spreadsheetml" to "Excel",
                "presentationml" to "PowerPoint",
                "ms-excel" to "Excel",
                "ms-powerpoint" to "PowerPoint",
                "visio" to "Visio",
            )

        /** What an archive says of itself in a part of that name, "" if nothing. */
        fun mimeTypeOf(archive: Archive): String =
            try {
                archive.bytes("mimetype")?.let { String(it, Charsets.ISO_8859_1).trim() }.orEmpty()
            } catch (_: IOException) {
                ""
            }
    }
}
