package io.edgeinfinite.app

import android.content.ContentProvider
import android.content.ContentValues
import android.database.Cursor
import android.database.MatrixCursor
import android.net.Uri
import android.os.ParcelFileDescriptor
import android.provider.DocumentsContract
import android.provider.DocumentsContract.Document
import org.robolectric.Robolectric
import java.io.File
import java.io.FileNotFoundException

/** What stands behind the system's file picker: real files under content addresses. */
class PickedFiles : ContentProvider() {
    override fun onCreate() = true

    override fun query(
        uri: Uri,
        projection: Array<String>?,
        selection: String?,
        selectionArgs: Array<String>?,
        sortOrder: String?,
    ): Cursor {
        val columns = checkNotNull(projection)
        val cursor = MatrixCursor(columns)
        val listsChildren = uri.lastPathSegment == "children"
        val file = fileOf(uri)
        val files = if (listsChildren) file.listFiles().orEmpty().toList() else listOf(file)
        for (each in files) cursor.addRow(columns.map { valueOf(it, each) })
        return cursor
    }

    override fun openFile(
        uri: Uri,
        mode: String,
    ): ParcelFileDescriptor {
        val file = fileOf(uri)
        if (!file.isFile) throw FileNotFoundException("${file.name} is gone")
        return ParcelFileDescriptor.open(file, ParcelFileDescriptor.parseMode(mode))
    }

    override fun getType(uri: Uri): String = "application/octet-stream"

    override fun insert(
        uri: Uri,
        values: ContentValues?,
    ): Uri? = null

    override fun delete(
        uri: Uri,
        selection: String?,
        selectionArgs: Array<String>?,
    ) = 0

    override fun update(
        uri: Uri,
        values: ContentValues?,
        selection: String?,
        selectionArgs: Array<String>?,
    ) = 0

    private fun valueOf(
        column: String,
        file: File,
    ): Any? =
        when (column) {
            Document.COLUMN_DOCUMENT_ID -> file.path
            Document.COLUMN_DISPLAY_NAME -> file.name
            Document.COLUMN_MIME_TYPE -> if (file.isDirectory) Document.MIME_TYPE_DIR else "text/plain"
            else -> null
        }

    private fun fileOf(uri: Uri): File {
        val segments = uri.pathSegments
        val at = segments.lastIndexOf("document").takeIf { it >= 0 } ?: segments.lastIndexOf("tree")
        return File(segments[at + 1])
    }

    companion object {
        private const val AUTHORITY = "io.edgeinfinite.test.files"

        /** The address under which a file is picked. */
        fun file(file: File): Uri {
            Robolectric.buildContentProvider(PickedFiles::class.java).create(AUTHORITY)
            return DocumentsContract.buildDocumentUri(AUTHORITY, file.path)
        }

        /** The address under which a folder is picked. */
        fun folder(folder: File): Uri {
            Robolectric.buildContentProvider(PickedFiles::class.java).create(AUTHORITY)
            return DocumentsContract.buildTreeDocumentUri(AUTHORITY, folder.path)
        }
    }
}
