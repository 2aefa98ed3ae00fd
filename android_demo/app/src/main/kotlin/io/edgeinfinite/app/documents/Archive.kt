package io.edgeinfinite.app.documents

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
 * The parts of an EPUB or a Word file, unpacked under one budget; as Python's `archive.py`.
 *
 * @param name the document's, for errors.
 * @param mostBytes of all that is unpacked.
 */
internal class Archive(
    private val name: String,
    private val zip: ZipFile,
    private val mostBytes: Long,
) {
    private var read = 0L
    private val entries =
        zip.entries().asSequence().toList().let { all ->
            all.associateBy { plain(decoded(it.name)) } + all.associateBy { plain(it.name) }
        }

    /** All parts' names as the archive has them. */
    val paths: List<String> get() = entries.values.map { it.name }.distinct()

    operator fun contains(path: String): Boolean = plain(path) in entries

    /**
     * A part's contents, null if there is none. Counts what comes out, whatever the archive says.
     *
     * @throws IOException it is damaged.
     * @throws io.edgeinfinite.app.ProblemException all that was unpacked is too much.
     */
    fun bytes(path: String): ByteArray? {
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

    /** A part as XML, null if there is none: entities of its own and files from elsewhere aren't followed. */
    fun xml(path: String): Document? =
        bytes(path)?.let { Jsoup.parse(ByteArrayInputStream(it), null, "", Parser.xmlParser()) }

    /** A damaged part is as one that is missing. */
    fun xmlIfWhole(path: String): Document? =
        try {
            xml(path)
        } catch (_: IOException) {
            null
        }

    companion object {
        /** How names are compared: documents are made on systems of different habits. */
        fun plain(path: String): String =
            Normalizer.normalize(path.replace('\\', '/').trimStart('/'), Normalizer.Form.NFC).lowercase()

        /**
         * A part's path in its archive.
         *
         * @param folder of the part that refers to it; "" for the archive's own.
         * @param reference a relative or absolute path, percent-encoded, with a fragment or without.
         */
        fun resolved(
            folder: String,
            reference: String,
        ): String {
            val path = decoded(reference.substringBefore('#').substringBefore('?')).replace('\\', '/')
            val parts = ArrayList<String>()
            for (part in (if (path.startsWith('/')) path else "$folder/$path").split('/')) {
                when (part) {
                    "", "." -> Unit
                    ".." -> if (parts.isNotEmpty()) parts.removeAt(parts.lastIndex)
                    else -> parts += part
                }
            }
            return parts.joinToString("/")
        }

        private fun decoded(reference: String): String =
            try {
                URLDecoder.decode(reference.replace("+", "%2B"), "UTF-8")
            } catch (_: IllegalArgumentException) { // a sign % that stands for itself
                reference
            }
    }
}
