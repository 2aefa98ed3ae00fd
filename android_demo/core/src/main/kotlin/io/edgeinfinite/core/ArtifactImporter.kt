package io.edgeinfinite.core

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.withContext
import java.io.EOFException
import java.io.File
import java.io.FilterInputStream
import java.io.IOException
import java.io.InputStream
import java.util.zip.ZipException
import java.util.zip.ZipInputStream

/** Called while importing with the bytes copied so far, and all bytes where that is known. */
public typealias ImportProgress = (copied: Long, total: Long?) -> Unit

/**
 * A file of an artifact to import, from Android's file picker or another folder.
 *
 * @property name without any folder.
 * @property open gives its contents from the start; closed by the importer.
 */
public class SourceFile(
    public val name: String,
    public val open: () -> InputStream,
)

/**
 * What [ArtifactImporter.list] finds: an artifact, or what is wrong with the folder.
 *
 * @property problem in one line in English; null where nothing is wrong.
 * @property code what kind of problem it is, for a text in another language.
 */
public data class StoredArtifact(
    val folder: File,
    val manifest: Manifest?,
    val problem: String?,
    val code: ErrorCode? = null,
)

/**
 * The app's folder of artifacts. Imports are checked by sha256, and are complete or don't happen.
 *
 * @property root holds one folder per artifact; created if missing.
 */
public class ArtifactImporter(
    public val root: File,
) {
    /** All artifacts by name; sizes are checked, contents aren't. */
    public suspend fun list(): List<StoredArtifact> = withContext(Dispatchers.IO) { stored() }

    private fun stored(): List<StoredArtifact> {
        val folders = root.listFiles { file -> file.isDirectory && !file.name.startsWith(".") }
        return folders.orEmpty().sortedBy { it.name }.map { folder ->
            try {
                StoredArtifact(folder, Artifact.read(folder, checkFiles = false).manifest, null)
            } catch (error: EdgeInfiniteException) {
                StoredArtifact(folder, null, error.message, error.code)
            }
        }
    }

    /**
     * Copies an artifact out of a zip archive.
     *
     * The archive holds the artifact's files at its top, or all of them in one folder.
     *
     * @param name of the new artifact; characters that a file name can't hold become `-`.
     * @param stream the archive's bytes, closed at the end.
     * @param cancelled asked between blocks.
     * @throws EdgeInfiniteException it isn't a zip archive, an entry points outside its folder, a
     *   file is missing or altered, the schema is newer, the name is taken, or no space is left.
     *   Nothing of it stays on disk.
     * @throws ReadingCancelled likewise.
     */
    public suspend fun importZip(
        name: String,
        stream: InputStream,
        progress: ImportProgress = { _, _ -> },
        cancelled: () -> Boolean = { false },
    ): Artifact =
        import(name, Copy(progress, cancelled)) { folder, copy ->
            val found = stream.use { unpack(it, folder, copy) }
            val manifest = Artifact.parseManifest(folder, found)
            // Files that the manifest doesn't name aren't part of the artifact.
            (found - manifest.files.keys - MANIFEST_FILE).forEach { File(folder, it).delete() }
            manifest
        }

    /**
     * Copies an artifact from a folder that is readable only through streams.
     *
     * @param name as in [importZip].
     * @param files what the folder holds; those that the manifest doesn't name are left out.
     * @throws EdgeInfiniteException as in [importZip].
     * @throws ReadingCancelled likewise.
     */
    public suspend fun importFiles(
        name: String,
        files: List<SourceFile>,
        progress: ImportProgress = { _, _ -> },
        cancelled: () -> Boolean = { false },
    ): Artifact =
        import(name, Copy(progress, cancelled)) { folder, copy ->
            val sources = files.associateBy { it.name }
            sources[MANIFEST_FILE]?.let { copy.file(it.open(), folder, MANIFEST_FILE) }
            val manifest = Artifact.parseManifest(folder, sources.keys)
            copy.total = manifest.bytes + File(folder, MANIFEST_FILE).length()
            for (file in manifest.files.keys) {
                copy.file(sources.getValue(file).open(), folder, file)
            }
            manifest
        }

    /** Removes an artifact; a name that isn't there is no error. */
    public suspend fun delete(name: String): Unit =
        withContext(Dispatchers.IO) {
            require(isPlainFileName(name))
            val folder = File(root, name)
            // Renamed first, so that an interrupted removal leaves no half artifact in the list.
            val doomed = File(root, ".$name.${System.nanoTime()}.deleted")
            if (folder.renameTo(doomed)) doomed.deleteRecursively()
        }

    private suspend fun import(
        name: String,
        copy: Copy,
        fill: (File, Copy) -> Manifest,
    ): Artifact {
        copy.job = currentCoroutineContext()[Job]
        return withContext(Dispatchers.IO) { imported(name, copy, fill) }
    }

    private fun imported(
        name: String,
        copy: Copy,
        fill: (File, Copy) -> Manifest,
    ): Artifact {
        val target = File(root, fileNameOf(name))
        if (target.exists()) {
            throw EdgeInfiniteException(
                ErrorCode.NAME_TAKEN,
                "there is an artifact ${target.name} already; delete it first",
            )
        }
        removeLeftovers()
        val folder = File(root, ".${target.name}.${System.nanoTime()}.partial")
        try {
            if (!folder.mkdirs()) throw IOException("$folder can't be made")
            val manifest = fill(folder, copy)
            copy.check(manifest)
            if (!folder.renameTo(target)) throw IOException("$target can't be made")
        } catch (error: ZipException) {
            throw EdgeInfiniteException(
                ErrorCode.BAD_ARCHIVE,
                "$name is not a whole zip archive (${error.message})",
                error,
            )
        } catch (error: EOFException) {
            throw EdgeInfiniteException(ErrorCode.BAD_ARCHIVE, "$name is cut short; copy it again", error)
        } catch (error: IOException) {
            throw EdgeInfiniteException(
                ErrorCode.STORAGE,
                "$name can't be copied: ${error.message}; is the storage full?",
                error,
            )
        } catch (error: SecurityException) {
            throw EdgeInfiniteException(
                ErrorCode.UNREADABLE_SOURCE,
                "$name can't be read: ${error.message}; pick it again",
                error,
            )
        } finally {
            folder.deleteRecursively()
        }
        return Artifact.read(target, checkFiles = false)
    }

    /** What a killed process left. */
    private fun removeLeftovers() {
        val old = root.listFiles { file -> file.name.startsWith(".") && file.isDirectory }
        old.orEmpty().filter { it.name.endsWith(".partial") || it.name.endsWith(".deleted") }
            .forEach { it.deleteRecursively() }
    }

    private fun unpack(
        stream: InputStream,
        folder: File,
        copy: Copy,
    ): Set<String> {
        val found = LinkedHashSet<String>()
        val folders = HashSet<String>()
        val zip = ZipInputStream(stream)
        while (true) {
            val entry = zip.nextEntry ?: break
            val parts = partsOf(entry.name)
            if (entry.isDirectory || parts.first() == "__MACOSX") continue
            if (parts.size > 2) {
                throw EdgeInfiniteException(ErrorCode.BAD_ARCHIVE, "${entry.name}: an artifact has no folders in it")
            }
            folders += if (parts.size == 2) parts[0] else ""
            if (folders.size > 1 || !found.add(parts.last())) {
                throw EdgeInfiniteException(
                    ErrorCode.BAD_ARCHIVE,
                    "${entry.name}: the archive holds more than one artifact",
                )
            }
            copy.file(zip, folder, parts.last())
        }
        if (found.isEmpty()) {
            throw EdgeInfiniteException(
                ErrorCode.BAD_ARCHIVE,
                "it is not a zip archive, or it is empty",
            )
        }
        return found
    }

    /** An entry's name cut at its slashes, all of them plain names. */
    private fun partsOf(entry: String): List<String> {
        val parts = entry.trimEnd('/').split('/')
        if (entry.startsWith("/") || !parts.all(::isPlainFileName)) {
            throw EdgeInfiniteException(
                ErrorCode.BAD_ARCHIVE,
                "archive entry '$entry' points outside the artifact; nothing was imported",
            )
        }
        return parts
    }

    private fun fileNameOf(name: String): String {
        val kept = name.map { if (it.isLetterOrDigit() || it in "._-") it else '-' }
        return kept.joinToString("").trimStart('.', '-').take(MAX_NAME).ifEmpty { "artifact" }
    }

    private companion object {
        const val MAX_NAME = 80
    }
}

/** One import's copying: hashes on the way, so that nothing is read twice. */
private class Copy(
    private val progress: ImportProgress,
    private val cancelled: () -> Boolean,
) {
    var total: Long? = null
    var job: Job? = null
    private var copied = 0L
    private val entries = HashMap<String, FileEntry>()

    fun file(
        source: InputStream,
        folder: File,
        name: String,
    ) {
        val digest = newSha256()
        var size = 0L
        Unclosed.unlessZip(source).use { stream ->
            File(folder, name).outputStream().use { target ->
                stream.forEachBlock { block, count ->
                    job?.ensureActive()
                    if (cancelled()) throw ReadingCancelled()
                    target.write(block, 0, count)
                    digest.update(block, 0, count)
                    size += count
                    copied += count
                    progress(copied, total)
                }
                target.fd.sync()
            }
        }
        entries[name] = FileEntry(digest.digest().toHex(), size)
    }

    fun check(manifest: Manifest) {
        for ((name, expected) in manifest.files) {
            val found = entries.getValue(name)
            val problem =
                when {
                    found.size != expected.size ->
                        "has ${found.size} bytes, the manifest says ${expected.size}"
                    found != expected -> "differs from what was exported (sha256)"
                    else -> continue
                }
            throw EdgeInfiniteException(
                ErrorCode.ARTIFACT_DAMAGED,
                "$name $problem; copy the artifact again; nothing was imported",
            )
        }
    }
}

/** Keeps a zip's stream open when one of its entries is done. */
private class Unclosed(
    stream: InputStream,
) : FilterInputStream(stream) {
    override fun close() = Unit

    companion object {
        fun unlessZip(stream: InputStream): InputStream =
            if (stream is ZipInputStream) Unclosed(stream) else stream
    }
}
