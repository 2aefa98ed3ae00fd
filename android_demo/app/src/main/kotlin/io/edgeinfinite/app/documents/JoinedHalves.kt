package io.edgeinfinite.app.documents

import java.io.InputStream
import java.io.PushbackInputStream

/**
 * UTF-8 in which halves of pairs of surrogates stand as if they were characters, as databases write it (CESU-8):
 * pairs joined, halves alone replaced.
 *
 * @param source its bytes, buffered.
 */
internal class JoinedHalves(
    source: InputStream,
) : InputStream() {
    private val source = PushbackInputStream(source, AHEAD)
    private var ready = NOTHING
    private var at = 0

    /** How many pairs were joined so far. */
    var pairs = 0L
        private set

    /** How many halves were replaced so far. */
    var halves = 0L
        private set

    override fun read(): Int {
        if (at == ready.size) {
            val first = source.read()
            if (first != LEAD) return first
            ready = character()
            at = 0
        }
        return ready[at++].toInt() and 0xff
    }

    /** What a character that begins with [LEAD] is to be; of any other its first byte. */
    private fun character(): ByteArray {
        val next = ByteArray(AHEAD)
        var count = 0
        while (count < AHEAD) {
            val byte = source.read()
            if (byte < 0) break
            next[count++] = byte.toByte()
        }
        val half = if (count >= 2) halfOf(next, 0) else 0
        val isNext = count == AHEAD && next[2] == LEAD.toByte()
        val low = if (half in HIGH && isNext) halfOf(next, 3) else 0
        return when {
            half == 0 -> byteArrayOf(LEAD.toByte()).also { source.unread(next, 0, count) }
            low in LOW -> String(charArrayOf(half.toChar(), low.toChar())).toByteArray().also { pairs += 1 }
            else -> {
                source.unread(next, 2, count - 2)
                halves += 1
                "${TextDecoder.REPLACEMENT}".toByteArray()
            }
        }
    }

    /** The half of a pair whose second and third byte stand there, 0 if they don't. */
    private fun halfOf(
        bytes: ByteArray,
        from: Int,
    ): Int {
        val (second, third) = bytes[from].toInt() to bytes[from + 1].toInt()
        val isHalf = second and 0xe0 == 0xa0 && third and 0xc0 == 0x80
        return if (isHalf) 0xd000 or (second and 0x3f shl 6) or (third and 0x3f) else 0
    }

    private companion object {
        const val LEAD = 0xed

        /** Bytes of a pair behind its first one. */
        const val AHEAD = 5
        val NOTHING = ByteArray(0)
        val HIGH = 0xd800..0xdbff
        val LOW = 0xdc00..0xdfff
    }
}
