package io.edgeinfinite.core.tokenizer

import kotlinx.serialization.json.JsonObject
import java.text.Normalizer as UnicodeForm

/** Changes text before it is cut into words. */
internal fun interface Normalizer {
    fun normalize(text: String): String
}

/**
 * The normalizer that a tokenizer.json describes.
 *
 * @throws EdgeInfiniteException a kind that isn't here.
 */
internal fun normalizerOf(fields: JsonObject?): Normalizer {
    if (fields == null) return Normalizer { it }
    return when (val type = fields.text("type")) {
        "Sequence" -> {
            val parts = fields.objects("normalizers").map(::normalizerOf)
            Normalizer { text -> parts.fold(text) { changed, part -> part.normalize(changed) } }
        }
        "NFC" -> form(UnicodeForm.Form.NFC)
        "NFD" -> form(UnicodeForm.Form.NFD)
        "NFKC" -> form(UnicodeForm.Form.NFKC)
        "NFKD" -> form(UnicodeForm.Form.NFKD)
        "Prepend" -> {
            val prefix = fields.text("prepend")
            Normalizer { if (it.isEmpty()) it else prefix + it }
        }
        "Replace" -> {
            val replacement = replacementOf(fields)
            Normalizer(replacement)
        }
        "Strip" -> {
            val left = fields.flag("strip_left")
            val right = fields.flag("strip_right")
            Normalizer { text ->
                val start = if (left) text.indexOfFirst { !it.isSpace() } else 0
                val end = if (right) text.indexOfLast { !it.isSpace() } + 1 else text.length
                if (start < 0 || end <= start) "" else text.substring(start, end)
            }
        }
        else -> throw unsupportedTokenizer("the normalizer $type")
    }
}

/** What a `Replace` normalizer or decoder does: `{"pattern": {"String": ...}, "content": ...}`. */
internal fun replacementOf(fields: JsonObject): (String) -> String {
    val pattern = fields.child("pattern") ?: throw unsupportedTokenizer("a Replace of nothing")
    val content = fields.text("content")
    val literal = pattern.textOrNull("String")
    if (literal != null) return { it.replace(literal, content) }
    val regex = SplitRegex(pattern.text("Regex"))
    return { text ->
        regex.spans(text).joinToString("") { if (it.isMatch) content else text.substring(it.start, it.end) }
    }
}

private fun Char.isSpace() = Characters.isWhiteSpace(code)

/**
 * One of Unicode's normal forms, applied to the runs of characters that it changes in the library's
 * version of Unicode. Platforms have newer versions, which move characters that the library doesn't
 * know; of those it knows, all versions make the same.
 */
private fun form(form: UnicodeForm.Form) =
    Normalizer { text ->
        val normalized = StringBuilder(text.length)
        val run = StringBuilder()

        fun flush() {
            if (run.isNotEmpty()) normalized.append(UnicodeForm.normalize(run, form))
            run.setLength(0)
        }
        var at = 0
        while (at < text.length) {
            val point = text.codePointAt(at)
            if (point in Characters.NORMALIZED) {
                run.appendCodePoint(point)
            } else {
                flush()
                normalized.appendCodePoint(point)
            }
            at += Character.charCount(point)
        }
        flush()
        normalized.toString()
    }
