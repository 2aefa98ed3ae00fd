package io.edgeinfinite.core

import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonArray
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import kotlinx.serialization.json.put
import kotlinx.serialization.json.putJsonObject
import java.io.File
import java.io.IOException
import java.io.RandomAccessFile
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel

/**
 * One tensor of a safetensors file.
 *
 * @property dtype numpy's name, `float32`, `int64`, ...
 * @property shape sizes of its axes.
 * @property parts its bytes, row-major, little-endian as in the file: one buffer after the other, each
 *   from its position to its limit.
 */
internal class StoredTensor(
    val dtype: String,
    val shape: List<Int>,
    val parts: List<ByteBuffer>,
) {
    /** Length in bytes. */
    val bytes: Long get() = parts.sumOf { it.remaining().toLong() }

    /** The whole tensor in one buffer, as in a file that was read. */
    val data: ByteBuffer get() = parts.single()
}

/** A safetensors file: 8 bytes of header length, a JSON header, the tensors' bytes. */
internal class Safetensors(
    val tensors: Map<String, StoredTensor>,
    val metadata: Map<String, String>,
) {
    /**
     * Writes the file.
     *
     * @throws IOException the file can't be written.
     */
    fun write(file: File) {
        val widestFirst = tensors.entries.sortedByDescending { elementBytesOf(it.value.dtype) }
        var offset = 0L
        val header =
            buildJsonObject {
                putJsonObject(METADATA) { metadata.forEach { (name, value) -> put(name, value) } }
                for ((name, tensor) in widestFirst) {
                    val end = offset + tensor.bytes
                    putJsonObject(name) {
                        put("dtype", NAMES.getValue(tensor.dtype))
                        put("shape", buildJsonArray { tensor.shape.forEach { add(JsonPrimitive(it)) } })
                        put("data_offsets", JsonArray(listOf(offset, end).map(::JsonPrimitive)))
                    }
                    offset = end
                }
            }
        val text = header.toString().toByteArray()
        val padded = text.copyOf((text.size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)
        padded.fill(' '.code.toByte(), text.size)
        val start = ByteBuffer.allocate(Long.SIZE_BYTES).order(ByteOrder.LITTLE_ENDIAN)
        start.putLong(0, padded.size.toLong())
        file.outputStream().use { stream ->
            val channel = stream.channel
            channel.writeAll(start)
            channel.writeAll(ByteBuffer.wrap(padded))
            widestFirst.forEach { (_, tensor) -> tensor.parts.forEach { channel.writeAll(it.duplicate()) } }
            channel.force(true)
        }
    }

    companion object {
        private const val METADATA = "__metadata__"
        private const val ALIGNMENT = 8
        private const val MAX_HEADER_BYTES = 100_000_000L
        private val NAMES =
            mapOf(
                "float64" to "F64",
                "float32" to "F32",
                "float16" to "F16",
                "int64" to "I64",
                "int32" to "I32",
                "int16" to "I16",
                "int8" to "I8",
                "uint8" to "U8",
                "bool" to "BOOL",
            )
        private val DTYPES = NAMES.entries.associate { (dtype, name) -> name to dtype }

        /**
         * Maps a file into memory.
         *
         * @throws IOException it can't be read.
         * @throws IllegalArgumentException it isn't a whole safetensors file.
         */
        fun read(file: File): Safetensors =
            RandomAccessFile(file, "r").use { source ->
                val size = source.length()
                require(size >= Long.SIZE_BYTES) { "the file has $size bytes" }
                require(size <= Int.MAX_VALUE) { "the file has $size bytes, 2 GB can be read" }
                val whole = source.channel.map(FileChannel.MapMode.READ_ONLY, 0, size)
                val headerBytes = whole.order(ByteOrder.LITTLE_ENDIAN).getLong(0)
                require(headerBytes in 2..minOf(size - Long.SIZE_BYTES, MAX_HEADER_BYTES)) {
                    "the header has $headerBytes bytes, the file $size"
                }
                val text = ByteArray(headerBytes.toInt())
                whole.part(Long.SIZE_BYTES.toLong(), headerBytes).get(text)
                val start = Long.SIZE_BYTES + headerBytes
                parse(text.decodeToString(throwOnInvalidSequence = true), whole.part(start, size - start))
            }

        private fun parse(
            text: String,
            data: ByteBuffer,
        ): Safetensors {
            val header =
                try {
                    Json.parseToJsonElement(text).jsonObject
                } catch (error: SerializationException) {
                    throw IllegalArgumentException("the header is no JSON", error)
                }
            val metadata =
                header[METADATA]?.jsonObject.orEmpty().mapValues { it.value.jsonPrimitive.content }
            val tensors = (header - METADATA).mapValues { (name, entry) -> tensorOf(name, entry, data) }
            val stored = tensors.values.sumOf { it.bytes }
            require(stored == data.capacity().toLong()) {
                "the tensors have $stored bytes, the file holds ${data.capacity()}"
            }
            return Safetensors(tensors, metadata)
        }

        private fun tensorOf(
            name: String,
            entry: JsonElement,
            data: ByteBuffer,
        ): StoredTensor {
            val fields: JsonObject = entry.jsonObject
            val dtype = DTYPES[fields.getValue("dtype").jsonPrimitive.content]
            requireNotNull(dtype) { "$name has an unknown type" }
            val shape = fields.getValue("shape").jsonArray.map { it.jsonPrimitive.long }
            val (start, end) = fields.getValue("data_offsets").jsonArray.map { it.jsonPrimitive.long }
            require(shape.all { it in 0..Int.MAX_VALUE }) { "$name has an impossible shape" }
            val bytes = shape.fold(elementBytesOf(dtype).toLong(), Math::multiplyExact)
            require(start in 0..end && end <= data.capacity() && end - start == bytes) {
                "$name lies outside the file"
            }
            return StoredTensor(dtype, shape.map { it.toInt() }, listOf(data.part(start, bytes)))
        }
    }
}

/** [bytes] bytes from [start] on, as their own buffer, little-endian. */
private fun ByteBuffer.part(
    start: Long,
    bytes: Long,
): ByteBuffer {
    val part = duplicate()
    // Through java.nio.Buffer: before API 28 Android's ByteBuffer has no overrides of these.
    (part as java.nio.Buffer).limit((start + bytes).toInt())
    (part as java.nio.Buffer).position(start.toInt())
    return part.slice().order(ByteOrder.LITTLE_ENDIAN)
}

private fun FileChannel.writeAll(buffer: ByteBuffer) {
    while (buffer.hasRemaining()) write(buffer)
}
