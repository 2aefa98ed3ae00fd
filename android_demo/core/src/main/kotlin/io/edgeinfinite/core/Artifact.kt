package io.edgeinfinite.core

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext
import java.io.File
import java.io.IOException
import java.io.InputStream
import java.security.MessageDigest

/**
 * A checked artifact on this device's file system.
 *
 * @property folder its folder; engines map its files into memory.
 */
public class Artifact private constructor(
    public val folder: File,
    public val manifest: Manifest,
) {
    /** The folder's name. */
    public val name: String get() = folder.name

    public companion object {
        /**
         * Opens and checks an artifact.
         *
         * @param checkFiles compare sha256 of every file with the manifest (about a second per
         *   100 MB on a phone); sizes are always compared.
         * @throws EdgeInfiniteException there is no artifact, its manifest is unreadable or of a
         *   newer schema, or a file is missing, truncated or altered.
         */
        public suspend fun open(
            folder: File,
            checkFiles: Boolean = true,
        ): Artifact = withContext(Dispatchers.IO) { read(folder, checkFiles) }

        /** As [open], on the calling thread. */
        internal fun read(
            folder: File,
            checkFiles: Boolean,
        ): Artifact {
            val manifest = readManifest(folder)
            for ((name, entry) in manifest.files) {
                problemOf(File(folder, name), entry, checkFiles)?.let {
                    throw EdgeInfiniteException(
                        ErrorCode.ARTIFACT_DAMAGED,
                        "$it; copy the artifact again or export it again",
                    )
                }
            }
            return Artifact(folder, manifest)
        }

        /**
         * The manifest of a folder that is being filled.
         *
         * @param found names of the files that are present or available.
         * @throws EdgeInfiniteException as [open] does; also when a file that it names isn't found.
         */
        internal fun parseManifest(
            folder: File,
            found: Set<String>,
        ): Manifest {
            val manifest = readManifest(folder)
            manifest.files.keys.find { it !in found }?.let {
                throw EdgeInfiniteException(
                    ErrorCode.ARTIFACT_DAMAGED,
                    "$it is missing; copy the artifact again; nothing was imported",
                )
            }
            return manifest
        }

        private fun readManifest(folder: File): Manifest {
            val file = File(folder, MANIFEST_FILE)
            if (!file.isFile) {
                throw EdgeInfiniteException(
                    ErrorCode.NO_ARTIFACT,
                    "this is not an artifact ($MANIFEST_FILE is missing); make one with: " +
                        "edgeinfinite export --model MODEL --backend onnx --output FOLDER",
                )
            }
            val text =
                try {
                    file.readBytes().decodeToString(throwOnInvalidSequence = true)
                } catch (error: IOException) {
                    throw EdgeInfiniteException(
                        ErrorCode.ARTIFACT_DAMAGED,
                        "$MANIFEST_FILE can't be read: ${error.message}",
                        error,
                    )
                }
            return Manifest.parse(text, MANIFEST_FILE)
        }

        private fun problemOf(
            file: File,
            entry: FileEntry,
            contents: Boolean,
        ): String? =
            when {
                !file.isFile -> "${file.name} is missing"
                file.length() != entry.size ->
                    "${file.name} has ${file.length()} bytes, the manifest says ${entry.size}"
                contents && sha256Of(file) != entry.sha256 ->
                    "${file.name} differs from what was exported (sha256)"
                else -> null
            }
    }
}

/** sha256 in hexadecimal. */
internal fun sha256Of(bytes: ByteArray): String = newSha256().digest(bytes).toHex()

private fun sha256Of(file: File): String =
    file.inputStream().use { stream ->
        val digest = newSha256()
        stream.forEachBlock { block, count -> digest.update(block, 0, count) }
        digest.digest().toHex()
    }

internal fun newSha256(): MessageDigest = MessageDigest.getInstance("SHA-256")

internal fun ByteArray.toHex(): String = joinToString("") { "%02x".format(it) }

/** Calls [use] with a block and the bytes in it until the stream ends. */
internal inline fun InputStream.forEachBlock(use: (ByteArray, Int) -> Unit) {
    val block = ByteArray(BLOCK_BYTES)
    while (true) {
        val count = read(block)
        if (count < 0) return
        use(block, count)
    }
}

private const val BLOCK_BYTES = 1 shl 17
