package io.edgeinfinite.core.tokenizer

import kotlinx.serialization.json.JsonObject

/**
 * Cuts text into the words that merges don't cross.
 *
 * A function of a word and whether the whole text begins with it, to words.
 */
internal fun interface PreTokenizer {
    fun split(
        word: String,
        isFirst: Boolean,
    ): List<String>
}

/**
 * The pre-tokenizer that a tokenizer.json describes.
 *
 * @throws EdgeInfiniteException a kind that isn't here.
 */
internal fun preTokenizerOf(fields: JsonObject?): PreTokenizer {
    if (fields == null) return PreTokenizer { word, _ -> listOf(word) }
    return when (val type = fields.text("type")) {
        "Sequence" -> sequence(fields.objects("pretokenizers").map(::preTokenizerOf))
        "ByteLevel" -> byteLevel(fields)
        "Split" -> splitting(spansOf(fields), fields.text("behavior"), fields.flag("invert"))
        "Digits" -> {
            val behavior = if (fields.flag("individual_digits")) "Isolated" else "Contiguous"
            splitting(spansOf(Characters.NUMERIC), behavior, inverts = false)
        }
        "Punctuation" ->
            splitting(spansOf(PUNCTUATION), fields.textOrNull("behavior") ?: "Isolated", inverts = false)
        "Metaspace" -> metaspace(fields)
        else -> throw unsupportedTokenizer("the pre-tokenizer $type")
    }
}

private fun sequence(parts: List<PreTokenizer>) =
    PreTokenizer { word, isFirst ->
        parts.fold(listOf(word)) { words, part ->
            words.flatMapIndexed { index, one -> part.split(one, isFirst && index == 0) }
        }
    }

private fun byteLevel(fields: JsonObject): PreTokenizer {
    val addsSpace = fields.flag("add_prefix_space")
    val regex = if (fields.flag("use_regex", default = true)) SplitRegex(GPT2_PATTERN) else null
    return PreTokenizer { word, _ ->
        val text = if (addsSpace && !word.startsWith(" ")) " $word" else word
        val words = regex?.spans(text)?.map { text.substring(it.start, it.end) } ?: listOf(text)
        words.map(ByteAlphabet::encode)
    }
}

private fun metaspace(fields: JsonObject): PreTokenizer {
    val mark = fields.text("replacement")
    val scheme = prependSchemeOf(fields)
    val splits = fields.flag("split", default = true)
    return PreTokenizer { word, isFirst ->
        val replaced = word.replace(" ", mark)
        val prepends = scheme == "always" || (scheme == "first" && isFirst)
        val text = if (prepends && !replaced.startsWith(mark)) mark + replaced else replaced
        if (!splits) {
            listOf(text)
        } else {
            val marks = literalSpans(text, mark)
            parts(text, marks, "MergedWithNext")
        }
    }
}

/** Where the mark is put before a text: `always`, `first` or `never`. */
internal fun prependSchemeOf(fields: JsonObject): String =
    fields.textOrNull("prepend_scheme")
        ?: if (fields.flag("add_prefix_space", default = true)) "always" else "never"

private fun spansOf(fields: JsonObject): (String) -> List<Span> {
    val pattern = fields.child("pattern") ?: throw unsupportedTokenizer("a Split at nothing")
    val literal = pattern.textOrNull("String")
    if (literal != null) return { literalSpans(it, literal) }
    val regex = SplitRegex(pattern.text("Regex"))
    return regex::spans
}

private fun spansOf(set: CharSet): (String) -> List<Span> =
    { text ->
        val spans = ArrayList<Span>()
        var from = 0
        var at = 0
        while (at < text.length) {
            val point = text.codePointAt(at)
            val end = at + Character.charCount(point)
            if (point in set) {
                if (from < at) spans += Span(from, at, false)
                spans += Span(at, end, true)
                from = end
            }
            at = end
        }
        if (from < text.length) spans += Span(from, text.length, false)
        spans
    }

private fun literalSpans(
    text: String,
    literal: String,
): List<Span> {
    val spans = ArrayList<Span>()
    var from = 0
    while (literal.isNotEmpty()) {
        val at = text.indexOf(literal, from)
        if (at < 0) break
        if (from < at) spans += Span(from, at, false)
        spans += Span(at, at + literal.length, true)
        from = at + literal.length
    }
    if (from < text.length) spans += Span(from, text.length, false)
    return spans
}

private fun splitting(
    spans: (String) -> List<Span>,
    behavior: String,
    inverts: Boolean,
): PreTokenizer {
    if (behavior !in BEHAVIORS) throw unsupportedTokenizer("splitting with $behavior")
    return PreTokenizer { word, _ ->
        val found = spans(word)
        parts(word, if (inverts) found.map { it.copy(isMatch = !it.isMatch) } else found, behavior)
    }
}

private fun parts(
    text: String,
    spans: List<Span>,
    behavior: String,
): List<String> {
    val merged =
        when (behavior) {
            "Removed" -> spans.filterNot { it.isMatch }
            "Contiguous" -> merge(spans) { last, span -> last.isMatch == span.isMatch }
            "MergedWithPrevious" -> merge(spans) { last, span -> span.isMatch && !last.isMatch }
            "MergedWithNext" ->
                merge(spans.asReversed()) { last, span -> span.isMatch && !last.isMatch }.asReversed()
            else -> spans
        }
    return merged.map { text.substring(it.start, it.end) }
}

/** Neighbours that [joins] says so of become one; `isMatch` stays that of the latest part. */
private fun merge(
    spans: List<Span>,
    joins: (Span, Span) -> Boolean,
): List<Span> {
    val merged = ArrayList<Span>()
    for (span in spans) {
        val last = merged.lastOrNull()
        if (last != null && joins(last, span)) {
            merged[merged.lastIndex] =
                Span(minOf(last.start, span.start), maxOf(last.end, span.end), span.isMatch)
        } else {
            merged += span
        }
    }
    return merged
}

private val BEHAVIORS =
    setOf("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext")

private val PUNCTUATION = CharSet { point ->
    (point < 0x80 && point > ' '.code && point != 0x7f && !point.toChar().isLetterOrDigit()) ||
        checkNotNull(Characters.property("P")).contains(point)
}

private const val GPT2_PATTERN =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
