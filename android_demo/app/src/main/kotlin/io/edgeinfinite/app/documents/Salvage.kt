package io.edgeinfinite.app.documents

import java.io.ByteArrayOutputStream
import java.io.File
import java.io.RandomAccessFile
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel
import java.util.zip.CRC32
import java.util.zip.DataFormatException
import java.util.zip.Deflater
import java.util.zip.Inflater
import java.util.zip.ZipEntry
import java.util.zip.ZipOutputStream

/**
 * What can be read of an archive whose directory is gone: a file that was cut, mostly. As Python's `salvage.py`.
 *
 * @param name the document's, for errors.
 * @param mostBytes of all that is unpacked.
 */
internal class Salvage(
    private val name: String,
    private val mostBytes: Long,
) {
    private class Part(
        val path: String,
        val bytes: ByteArray,
    )

    /** A part's bytes, null if it is cut or damaged, and where it ends. */
    private class Unpacked(
        val bytes: ByteArray?,
        val end: Int,
    )

    private var unpacked = 0L

    /**
     * An archive of the parts that are whole, in a new file that the caller deletes; null if there are none.
     *
     * @throws io.edgeinfinite.app.ProblemException all that was unpacked is too much.
     */
    fun of(damaged: File): File? {
        if (damaged.length() > Int.MAX_VALUE) return null
        RandomAccessFile(damaged, "r").use { file ->
            val data = file.channel.map(FileChannel.MapMode.READ_ONLY, 0, damaged.length())
            val parts = parts(data.order(ByteOrder.LITTLE_ENDIAN)).distinctBy { it.path }.iterator()
            if (!parts.hasNext()) return null
            val made = File.createTempFile("salvaged", ".zip")
            try {
                ZipOutputStream(made.outputStream().buffered()).use { zip ->
                    zip.setLevel(Deflater.BEST_SPEED)
                    for (part in parts) {
                        zip.putNextEntry(ZipEntry(part.path))
                        zip.write(part.bytes)
                    }
                }
                return made
            } catch (error: Throwable) {
                made.delete()
                throw error
            }
        }
    }

    private fun parts(data: ByteBuffer): Sequence<Part> =
        sequence {
            var at = mark(data, 0)
            while (at >= 0 && at + HEAD <= data.limit()) {
                val flags = data.getShort(at + FLAGS).toInt()
                val nameSize = data.getShort(at + NAME_SIZE).toInt() and SHORT
                val start = at + HEAD + nameSize + (data.getShort(at + MORE_SIZE).toInt() and SHORT)
                val found = if (start > data.limit() || flags and PASSWORD != 0) null else unpack(data, at, start)
                val bytes = found?.bytes
                val isWhole = flags and STREAMED != 0 || bytes?.let(::sumOf) == data.getInt(at + SUM)
                if (bytes != null && isWhole && nameSize > 0) {
                    val path = nameOf(bytes(data, at + HEAD, nameSize))
                    if (!path.endsWith('/')) yield(Part(path, bytes))
                }
                at = mark(data, maxOf(found?.end ?: 0, at + Int.SIZE_BYTES))
            }
        }

    /** The part whose head stands [at] a place and whose contents [start] at another; null if nothing tells its end. */
    private fun unpack(
        data: ByteBuffer,
        at: Int,
        start: Int,
    ): Unpacked? {
        val isStreamed = data.getShort(at + FLAGS).toInt() and STREAMED != 0
        val packed = data.getInt(at + PACKED).toLong() and INT
        return when (data.getShort(at + METHOD).toInt()) {
            DEFLATED -> inflated(data, start)
            STORED -> {
                if (isStreamed || start + packed > data.limit()) return null
                spend(packed)
                Unpacked(bytes(data, start, packed.toInt()), start + packed.toInt())
            }
            else -> null
        }
    }

    private fun inflated(
        data: ByteBuffer,
        start: Int,
    ): Unpacked {
        val inflater = Inflater(true)
        val bytes = ByteArrayOutputStream()
        val block = ByteArray(BLOCK)
        var at = start
        try {
            while (!inflater.finished()) {
                val count = inflater.inflate(block)
                spend(count.toLong())
                bytes.write(block, 0, count)
                if (count > 0 || inflater.finished()) continue
                if (!inflater.needsInput() || at == data.limit()) return Unpacked(null, data.limit())
                val more = minOf(BLOCK, data.limit() - at)
                inflater.setInput(bytes(data, at, more))
                at += more
            }
            return Unpacked(bytes.toByteArray(), at - inflater.remaining)
        } catch (_: DataFormatException) {
            return Unpacked(null, start)
        } finally {
            inflater.end()
        }
    }

    private fun spend(count: Long) {
        unpacked += count
        if (unpacked > mostBytes) throw DocumentReader.tooLong(name, mostBytes)
    }

    private fun sumOf(bytes: ByteArray) = CRC32().apply { update(bytes) }.value.toInt()

    private fun bytes(
        data: ByteBuffer,
        at: Int,
        count: Int,
    ): ByteArray {
        val bytes = ByteArray(count)
        data.duplicate().apply { position(at) }.get(bytes)
        return bytes
    }

    private fun nameOf(bytes: ByteArray): String {
        val text = String(bytes, Charsets.UTF_8)
        return if ('\uFFFD' in text) String(bytes, Charsets.ISO_8859_1) else text
    }

    /** Where the next head begins; -1 if there is none. */
    private fun mark(
        data: ByteBuffer,
        from: Int,
    ): Int {
        for (at in from..data.limit() - Int.SIZE_BYTES) {
            if (data.get(at) == FIRST && data.getInt(at) == MARK) return at
        }
        return -1
    }

    private companion object {
        /** `PK`, 3, 4. */
        const val MARK = 0x04034b50
        const val FIRST = 0x50.toByte()

        /** Bytes of a head without the name, and where its fields stand. */
        const val HEAD = 30
        const val FLAGS = 6
        const val METHOD = 8
        const val SUM = 14
        const val PACKED = 18
        const val NAME_SIZE = 26
        const val MORE_SIZE = 28

        const val STORED = 0
        const val DEFLATED = 8
        const val PASSWORD = 1

        /** Size and sum stand behind the part. */
        const val STREAMED = 1 shl 3
        const val BLOCK = 1 shl 16
        const val SHORT = 0xffff
        const val INT = 0xffffffffL
    }
}
