package io.edgeinfinite.app.documents

import java.io.ByteArrayOutputStream
import java.util.zip.ZipEntry
import java.util.zip.ZipOutputStream

/** Word files as small as they can be. */
internal object WordFiles {
    const val MAIN = "word/document.xml"
    private const val RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    private const val WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    private const val TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"

    /** A part's root, with the namespaces that tests need. */
    fun root(
        name: String,
        inner: String,
    ) = "<w:$name xmlns:w='$WORD' xmlns:r='$RELATIONSHIPS' xmlns:m='math' xmlns:mc='mc' xmlns:v='v'>$inner</w:$name>"

    fun document(body: String) = root("document", "<w:body>$body<w:sectPr/></w:body>")

    fun paragraph(
        text: String,
        properties: String = "",
    ) = "<w:p><w:pPr>$properties</w:pPr><w:r><w:t>$text</w:t></w:r></w:p>"

    /** A part's relationships: kind, target, and for an address "External". */
    fun relationships(vararg links: Triple<String, String, String>): String {
        val rows =
            links.withIndex().joinToString("") { (at, link) ->
                val (kind, target, mode) = link
                "<Relationship Id='rId$at' Type='$RELATIONSHIPS/$kind' Target='$target' TargetMode='$mode'/>"
            }
        return "<Relationships>$rows</Relationships>"
    }

    /**
     * @param body what is in the document's body.
     * @param more further parts, or others in place of those that there are.
     * @param type of the main part.
     * @param main the path of the main part, as the package states it.
     */
    fun of(
        body: String,
        more: Map<String, String> = emptyMap(),
        type: String = TYPE,
        main: String = MAIN,
    ): ByteArray {
        val types = "<Types><Override PartName='/$main' ContentType='$type'/></Types>"
        val parts =
            linkedMapOf(
                "[Content_Types].xml" to types,
                "_rels/.rels" to relationships(Triple("officeDocument", "/$main", "")),
                MAIN to document(body),
            )
        return zip((parts + more).mapValues { it.value.toByteArray() })
    }

    fun zip(parts: Map<String, ByteArray>): ByteArray {
        val bytes = ByteArrayOutputStream()
        ZipOutputStream(bytes).use { zip ->
            for ((name, data) in parts) {
                zip.putNextEntry(ZipEntry(name))
                zip.write(data)
            }
        }
        return bytes.toByteArray()
    }
}
