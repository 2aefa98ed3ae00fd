package io.edgeinfinite.app.data

import android.content.ContentResolver
import android.net.Uri
import android.provider.DocumentsContract
import android.provider.DocumentsContract.Document
import android.provider.OpenableColumns
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.SourceFile
import java.io.FileNotFoundException
import java.io.IOException
import java.io.InputStream
import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.CodingErrorAction

/** A text that was read from a file. */
data class TextDocument(
    val name: String,
    val text: String,
)

/**
 * What the system's file picker gave.
 *
 * Everything here blocks: call it on an I/O thread.
 */
class Documents(
    private val resolver: ContentResolver,
) {
    /** The name that the picker showed, or the last part of the address. */
    fun nameOf(uri: Uri): String {
        val columns = arrayOf(OpenableColumns.DISPLAY_NAME)
        val name =
            try {
                resolver.query(uri, columns, null, null, null)?.use { cursor ->
                    if (cursor.moveToFirst()) cursor.getString(0) else null
                }
            } catch (_: RuntimeException) { // another app's code; the name is not worth failing for
                null
            }
        return name ?: uri.lastPathSegment?.substringAfterLast('/') ?: "file"
    }

    /**
     * @throws IOException the file is gone or may not be read.
     */
    fun open(uri: Uri): InputStream =
        foreign { resolver.openInputStream(uri) } ?: throw FileNotFoundException("it is gone; pick it again")

    /** The name of a folder that was picked as a tree. */
    fun folderName(tree: Uri): String =
        nameOf(DocumentsContract.buildDocumentUriUsingTree(tree, DocumentsContract.getTreeDocumentId(tree)))

    /**
     * The files of a picked folder, without what lies in folders of it.
     *
     * @throws IOException it may not be read.
     */
    fun filesOf(tree: Uri): List<SourceFile> {
        val folder = DocumentsContract.getTreeDocumentId(tree)
        val children = DocumentsContract.buildChildDocumentsUriUsingTree(tree, folder)
        val columns =
            arrayOf(Document.COLUMN_DOCUMENT_ID, Document.COLUMN_DISPLAY_NAME, Document.COLUMN_MIME_TYPE)
        val files = ArrayList<SourceFile>()
        foreign { resolver.query(children, columns, null, null, null) }?.use { cursor ->
            while (cursor.moveToNext()) {
                if (cursor.getString(2) == Document.MIME_TYPE_DIR) continue
                val uri = DocumentsContract.buildDocumentUriUsingTree(tree, cursor.getString(0))
                files += SourceFile(cursor.getString(1)) { open(uri) }
            }
        }
        return files
    }

    /**
     * Reads a text file.
     *
     * @throws EdgeInfiniteException it is gone, too long for this device's heap, or no UTF-8 text.
     */
    fun readText(uri: Uri): TextDocument {
        val name = nameOf(uri)
        val bytes =
            try {
                open(uri).use { it.readBytesUpTo(MAX_TEXT_BYTES) }
            } catch (error: IOException) {
                throw EdgeInfiniteException("$name can't be read: ${error.message}", error)
            }
        if (bytes == null) {
            throw EdgeInfiniteException("$name is longer than ${MAX_TEXT_BYTES / 1_000_000} MB; split it")
        }
        return TextDocument(name, decode(bytes, name))
    }

    /** Calls into another app, whose failures arrive as exceptions of any kind. */
    private fun <T> foreign(call: () -> T): T =
        try {
            call()
        } catch (error: SecurityException) {
            throw IOException("it may not be read any more; pick it again", error)
        } catch (error: RuntimeException) {
            throw IOException("the app that keeps it failed: ${error.message}", error)
        }

    private fun decode(
        bytes: ByteArray,
        name: String,
    ): String {
        val decoder =
            Charsets.UTF_8
                .newDecoder()
                .onMalformedInput(CodingErrorAction.REPORT)
                .onUnmappableCharacter(CodingErrorAction.REPORT)
        val text =
            try {
                decoder.decode(ByteBuffer.wrap(bytes)).toString()
            } catch (error: CharacterCodingException) {
                throw EdgeInfiniteException("$name is not a text in UTF-8; convert it first", error)
            }
        if ('\u0000' in text) throw EdgeInfiniteException("$name is not a text file; choose another")
        return text.removePrefix("\uFEFF")
    }

    /** All bytes, or null when there are more than [limit]. */
    private fun InputStream.readBytesUpTo(limit: Int): ByteArray? {
        val bytes = java.io.ByteArrayOutputStream()
        val block = ByteArray(1 shl 16)
        while (true) {
            val count = read(block)
            if (count < 0) return bytes.toByteArray()
            if (bytes.size() + count > limit) return null
            bytes.write(block, 0, count)
        }
    }

    private companion object {
        /** About 5 million tokens; a book has one megabyte. */
        const val MAX_TEXT_BYTES = 20_000_000
    }
}
