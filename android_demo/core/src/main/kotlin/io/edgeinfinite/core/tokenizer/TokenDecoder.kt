package io.edgeinfinite.core.tokenizer

import kotlinx.serialization.json.JsonObject

/** Turns the tokens of a text into pieces of it, which are then joined. */
internal fun interface TokenDecoder {
    fun decode(tokens: List<String>): List<String>
}

/**
 * The decoder that a tokenizer.json describes; without one tokens are joined by spaces.
 *
 * @throws EdgeInfiniteException a kind that isn't here.
 */
internal fun decoderOf(fields: JsonObject?): TokenDecoder {
    if (fields == null) return TokenDecoder { listOf(it.joinToString(" ")) }
    return when (val type = fields.text("type")) {
        "Sequence" -> {
            val parts = fields.objects("decoders").map(::decoderOf)
            TokenDecoder { tokens -> parts.fold(tokens) { changed, part -> part.decode(changed) } }
        }
        "ByteLevel" -> TokenDecoder { tokens -> listOf(decodeUtf8(joined(tokens))) }
        "ByteFallback" -> TokenDecoder(::decodeFallback)
        "Fuse" -> TokenDecoder { listOf(it.joinToString("")) }
        "Replace" -> {
            val replacement = replacementOf(fields)
            TokenDecoder { tokens -> tokens.map(replacement) }
        }
        "Strip" -> stripping(fields)
        "Metaspace" -> metaspace(fields)
        else -> throw unsupportedTokenizer("the decoder $type")
    }
}

/** The types of a decoder and of all its parts. */
internal fun decoderKindsOf(fields: JsonObject?): Set<String> {
    if (fields == null) return emptySet()
    return fields.objects("decoders").flatMapTo(hashSetOf(fields.text("type")), ::decoderKindsOf)
}

private fun joined(tokens: List<String>): ByteArray {
    val parts = tokens.map(ByteAlphabet::decode)
    val bytes = ByteArray(parts.sumOf { it.size })
    var at = 0
    for (part in parts) {
        part.copyInto(bytes, at)
        at += part.size
    }
    return bytes
}

/** Runs of `<0x0A>` tokens are UTF-8; where it is broken, every byte is one U+FFFD. */
private fun decodeFallback(tokens: List<String>): List<String> {
    val decoded = ArrayList<String>()
    val bytes = ArrayList<Byte>()

    fun flush() {
        if (bytes.isEmpty()) return
        val array = bytes.toByteArray()
        val text = decodeUtf8(array)
        if (text.toByteArray().contentEquals(array)) {
            decoded += text
        } else {
            repeat(array.size) { decoded += REPLACEMENT.toString() }
        }
        bytes.clear()
    }
    for (token in tokens) {
        val byte = byteOf(token)
        if (byte != null) {
            bytes += byte
        } else {
            flush()
            decoded += token
        }
    }
    flush()
    return decoded
}

/** The byte of a token such as `<0x0A>`; null for any other. */
internal fun byteOf(token: String): Byte? =
    if (token.length == 6 && token.startsWith("<0x") && token.endsWith(">")) {
        token.substring(3, 5).toIntOrNull(16)?.toByte()
    } else {
        null
    }

private fun stripping(fields: JsonObject): TokenDecoder {
    val content = fields.text("content").single()
    val start = fields.number("start")
    val stop = fields.number("stop")
    return TokenDecoder { tokens ->
        tokens.map { token ->
            val left = token.take(start).takeWhile { it == content }.length
            val right = token.drop(left).takeLast(stop).takeLastWhile { it == content }.length
            token.substring(left, token.length - right)
        }
    }
}

private fun metaspace(fields: JsonObject): TokenDecoder {
    val mark = fields.text("replacement")
    val prepends = prependSchemeOf(fields) != "never"
    return TokenDecoder { tokens ->
        tokens.mapIndexed { index, token -> token.replace(mark, if (index == 0 && prepends) "" else " ") }
    }
}
