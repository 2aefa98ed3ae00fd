package io.edgeinfinite.app.data

import android.content.ContentResolver
import android.net.Uri
import android.provider.DocumentsContract
import android.provider.DocumentsContract.Document
import android.provider.OpenableColumns
import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import io.edgeinfinite.app.documents.DocumentReader
import io.edgeinfinite.app.documents.LongCopy
import io.edgeinfinite.app.documents.LongText
import io.edgeinfinite.core.SourceFile
import io.edgeinfinite.core.TextSource
import java.io.File
import java.io.FileNotFoundException
import java.io.IOException
import java.io.InputStream

/**
 * A text that was read from a file.
 *
 * @property name its own title, or the file's name.
 * @property text all of it; of a long one its beginning.
 * @property guess the encoding that it was taken for, where the file doesn't tell; else null.
 * @property left what isn't in the text, or isn't as the file has it; null if nothing.
 * @property long a text that is better read piece by piece; null for one that isn't long.
 */
data class TextDocument(
    val name: String,
    val text: String,
    val guess: String? = null,
    val long: TextSource? = null,
    val left: Problem? = null,
)

/**
 * What the system's file picker gave.
 *
 * Everything here blocks: call it on an I/O thread.
 *
 * @param cache where a document lies while it is read.
 */
class Documents(
    private val resolver: ContentResolver,
    private val cache: File,
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

    /**
     * Copies a file to where the person wants it.
     *
     * @throws ProblemException it can't be written there.
     */
    fun write(
        file: File,
        target: Uri,
    ) {
        try {
            val stream = foreign { resolver.openOutputStream(target, "wt") }
            (stream ?: throw FileNotFoundException("it is gone")).use { to ->
                file.inputStream().use { from -> from.copyTo(to) }
            }
        } catch (error: IOException) {
            throw ProblemException(Problem(R.string.problem_unwritable, listOf(nameOf(target)), error.message), error)
        }
    }

    /**
     * Copies what the person chose into a file of the app.
     *
     * @throws ProblemException it can't be read, or there is no space for it.
     */
    fun copy(
        source: Uri,
        file: File,
    ) {
        try {
            open(source).use { from -> file.outputStream().use { to -> from.copyTo(to) } }
        } catch (error: IOException) {
            throw ProblemException(Problem(R.string.problem_unreadable, listOf(nameOf(source)), error.message), error)
        }
    }

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
     * Reads a document of a kind that [DocumentReader] knows.
     *
     * @param longText where a long text is kept until it is read; written only then.
     * @throws ProblemException it is gone, damaged, no document, or too long for this device's heap.
     */
    fun readText(
        uri: Uri,
        longText: File,
    ): TextDocument {
        val name = nameOf(uri)
        val here = File.createTempFile("document", null, cache)
        try {
            copy(uri, here)
            val reader = DocumentReader()
            if (!reader.isLongText(name, here)) {
                val (text, guess, left, title) = reader.read(name, here)
                return TextDocument(title.ifEmpty { name }, text, guess, left = left)
            }
            val (guess, left) = copied(name, here, longText)
            val long = LongText(longText)
            return TextDocument(name, long.pieceAt(0)?.text.orEmpty(), guess, long, left)
        } finally {
            here.delete()
        }
    }

    private fun copied(
        name: String,
        from: File,
        to: File,
    ): Pair<String?, Problem?> =
        try {
            LongCopy(name, from, to).run()
        } catch (error: IOException) {
            throw ProblemException(Problem(R.string.error_storage, detail = error.message), error)
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
}
