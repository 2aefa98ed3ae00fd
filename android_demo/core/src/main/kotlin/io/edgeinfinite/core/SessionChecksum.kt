package io.edgeinfinite.core

import java.io.File
import java.io.IOException
import java.io.RandomAccessFile
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel
import java.nio.file.StandardOpenOption
import java.security.MessageDigest

/**
 * The checksum in a session file's metadata: the SHA-256 of the whole file, with zeros in place of
 * its own 64 digits. Like `artifact/session_file.py`.
 */
internal object SessionChecksum {
    const val KEY = "edgeinfinite.sha256"
    private const val DIGITS = 64
    private const val BUFFER = 1 shl 20
    private const val LONGEST_HEADER = 100_000_000L

    /** The value under [KEY] before [seal]. */
    val NONE = "0".repeat(DIGITS)

    /**
     * Writes the checksum into a new file and syncs the file to disk.
     *
     * @throws IOException as the file system says.
     */
    fun seal(file: File) =
        RandomAccessFile(file, "rw").use { sealed ->
            val place = placeIn(sealed)
            val checksum = of(sealed, place)
            sealed.seek(place)
            sealed.write(checksum.toByteArray())
            sealed.channel.force(true)
        }

    /**
     * Throws if a file was changed after it was written.
     *
     * @throws IllegalArgumentException the checksum doesn't match the contents.
     */
    fun check(
        file: File,
        stored: String?,
    ) = RandomAccessFile(file, "r").use { source ->
        require(of(source, placeIn(source)) == stored) { "its checksum isn't that of its contents" }
    }

    /** Syncs a folder's entries to disk, where the system can. */
    fun force(folder: File) {
        try {
            FileChannel.open(folder.toPath(), StandardOpenOption.READ).use { it.force(true) }
        } catch (_: IOException) {
            // Not every file system opens folders; the file itself is on the disk.
        }
    }

    private fun placeIn(file: RandomAccessFile): Long {
        val start = ByteArray(Long.SIZE_BYTES)
        file.seek(0)
        file.readFully(start)
        val length = ByteBuffer.wrap(start).order(ByteOrder.LITTLE_ENDIAN).getLong(0)
        require(length in 0..minOf(LONGEST_HEADER, file.length() - Long.SIZE_BYTES)) { "a header of $length bytes" }
        val header = ByteArray(length.toInt()).also(file::readFully)
        // In a value the quotes would be escaped, so this match is the key. Each byte is one
        // character here.
        val key = "\"$KEY\":\""
        val at = header.toString(Charsets.ISO_8859_1).indexOf(key)
        require(at >= 0 && at + key.length + DIGITS <= length) { "it has no checksum" }
        return Long.SIZE_BYTES.toLong() + at + key.length
    }

    private fun of(
        file: RandomAccessFile,
        place: Long,
    ): String {
        val digest = MessageDigest.getInstance("SHA-256")
        update(digest, file, 0, place)
        digest.update(NONE.toByteArray())
        update(digest, file, place + DIGITS, file.length())
        return digest.digest().joinToString("") { "%02x".format(it) }
    }

    private fun update(
        digest: MessageDigest,
        file: RandomAccessFile,
        start: Long,
        end: Long,
    ) {
        val buffer = ByteArray(BUFFER)
        file.seek(start)
        var left = end - start
        while (left > 0) {
            val count = file.read(buffer, 0, minOf(left, buffer.size.toLong()).toInt())
            if (count < 0) throw IOException("the file became shorter")
            digest.update(buffer, 0, count)
            left -= count
        }
    }
}
