package io.edgeinfinite.core.tokenizer

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.int
import kotlinx.serialization.json.intOrNull
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject

/** A tokenizer.json asks for something that isn't here; [what] names it. */
internal fun unsupportedTokenizer(what: String) =
    EdgeInfiniteException(
        ErrorCode.ARTIFACT_NEWER,
        "tokenizer.json asks for $what, which this app doesn't have; update the app",
    )

/**
 * The tokenizers library's BPE tokenizers, read from their tokenizer.json: byte-level ones and those
 * with byte fallback. Ids are equal to the library's. Thread-safe.
 */
internal class Tokenizer private constructor(
    private val model: Bpe,
    val addedTokens: List<AddedToken>,
    private val normalizer: Normalizer,
    private val preTokenizer: PreTokenizer,
    private val template: List<Int>,
    private val decoder: TokenDecoder,
    val decoderKinds: Set<String>,
) {
    private val tokens: Map<Int, String> by lazy {
        HashMap<Int, String>().apply {
            model.vocabulary.forEach { (token, id) -> put(id, token) }
            addedTokens.forEach { put(it.id, it.content) }
        }
    }
    private val ids = addedTokens.associate { it.content to it.id }
    private val special = addedTokens.filter { it.special }.mapTo(HashSet()) { it.content }
    private val raw = AddedTokenFinder(addedTokens.filterNot { it.normalized }.associateBy { it.content })
    private val normalized =
        AddedTokenFinder(addedTokens.filter { it.normalized }.associateBy { normalizer.normalize(it.content) })

    /** The id of a token; null when there is none of that text. */
    fun idOf(token: String): Int? = ids[token] ?: model.vocabulary[token]

    /** The id of a token that the model itself has; null when there is none of that text. */
    fun wordOf(token: String): Int? = model.vocabulary[token]

    /** A tokenizer with the same model and other added tokens; it adds no special tokens of its own. */
    fun withAddedTokens(tokens: List<AddedToken>) =
        Tokenizer(model, tokens, normalizer, preTokenizer, listOf(TEXT), decoder, decoderKinds)

    /** A token as the vocabulary has it; null for an id without one. */
    fun tokenOf(id: Int): String? = tokens[id]

    /** Whether a token is left out of texts. */
    fun isSpecial(id: Int): Boolean = tokens[id] in special

    /** All ids that have a token, in order. */
    fun ids(): Sequence<Int> = tokens.keys.sorted().asSequence()

    /** The text as tokens are looked for in it that have [AddedToken.normalized]. */
    fun normalize(text: String): String = normalizer.normalize(text)

    /**
     * The tokens of a text.
     *
     * @param addSpecialTokens put the tokenizer's own around it, such as the beginning of a text.
     * @throws EdgeInfiniteException the text holds half a surrogate pair.
     */
    fun encode(
        text: String,
        addSpecialTokens: Boolean,
    ): IntArray {
        checkUnicode(text)
        val encoded = IntList(text.length / 3)
        for (piece in raw.pieces(text)) {
            if (piece.token != null) encoded.add(piece.token) else encodePiece(piece, encoded)
        }
        if (!addSpecialTokens) return encoded.toIntArray()
        return template.flatMap { id -> if (id == TEXT) encoded.toIntArray().asList() else listOf(id) }
            .toIntArray()
    }

    private fun encodePiece(
        piece: Piece,
        encoded: IntList,
    ) {
        for (part in normalized.pieces(normalizer.normalize(piece.text))) {
            if (part.token != null) {
                encoded.add(part.token)
                continue
            }
            val isFirst = piece.start == 0 && part.start == 0
            preTokenizer.split(part.text, isFirst).forEach { model.encode(it, encoded) }
        }
    }

    /** The text of tokens; ids that there are none of are left out. */
    fun decode(
        ids: IntArray,
        skipSpecialTokens: Boolean,
    ): String {
        val texts = ids.asList().mapNotNull { tokens[it] }
        val kept = if (skipSpecialTokens) texts.filter { it !in special } else texts
        return decoder.decode(kept).joinToString("")
    }

    private fun checkUnicode(text: String) {
        var at = 0
        while (at < text.length) {
            val point = text.codePointAt(at)
            if (point in 0xd800..0xdfff) {
                throw EdgeInfiniteException(
                    ErrorCode.INVALID_ARGUMENT,
                    "the text isn't valid Unicode at character $at; save it as UTF-8",
                )
            }
            at += Character.charCount(point)
        }
    }

    companion object {
        /** Stands in the template for the text itself. */
        private const val TEXT = -1

        /** The largest vocabularies have a quarter of a million tokens. */
        private const val LARGEST_ID = 1 shl 24

        /**
         * Reads a tokenizer.json.
         *
         * @param names other texts for some tokens, which keep their ids; such a tokenizer adds no
         *   special tokens of its own.
         * @throws SerializationException it isn't one.
         * @throws EdgeInfiniteException it describes a tokenizer of another kind.
         */
        fun parse(
            json: String,
            names: Map<String, String> = emptyMap(),
        ): Tokenizer {
            val root = Json.parseToJsonElement(json)
            try {
                return of(root.jsonObject, names)
            } catch (error: SerializationException) {
                throw error
            } catch (error: EdgeInfiniteException) {
                throw error
            } catch (error: RuntimeException) { // a value of another kind, or one that is missing
                throw SerializationException(error.message, error)
            }
        }

        private fun of(
            fields: JsonObject,
            names: Map<String, String>,
        ): Tokenizer {
            val added =
                fields.objects("added_tokens").map(::addedToken).map {
                    it.copy(content = names[it.content] ?: it.content)
                }
            val model =
                modelOf(fields.child("model") ?: throw SerializationException("it has no model"), names)
            val ids = model.vocabulary + added.associate { it.content to it.id }
            return Tokenizer(
                model,
                added,
                normalizerOf(fields.child("normalizer")),
                preTokenizerOf(fields.child("pre_tokenizer")),
                if (names.isEmpty()) templateOf(fields.child("post_processor"), ids) else listOf(TEXT),
                decoderOf(fields.child("decoder")),
                decoderKindsOf(fields.child("decoder")),
            )
        }

        private fun addedToken(fields: JsonObject): AddedToken {
            val special = fields.flag("special")
            return AddedToken(
                id = fields.number("id"),
                content = fields.text("content"),
                singleWord = fields.flag("single_word"),
                stripsLeft = fields.flag("lstrip"),
                stripsRight = fields.flag("rstrip"),
                normalized = fields.flag("normalized", default = !special),
                special = special,
            )
        }

        private fun modelOf(
            fields: JsonObject,
            names: Map<String, String>,
        ): Bpe {
            val type = fields.textOrNull("type") ?: "BPE"
            val affixes = listOf("continuing_subword_prefix", "end_of_word_suffix")
            val refused =
                when {
                    type != "BPE" || "merges" !in fields -> "the model $type"
                    affixes.any { !fields.textOrNull(it).isNullOrEmpty() } -> "subword affixes"
                    else -> null
                }
            if (refused != null) throw unsupportedTokenizer(refused)
            val vocabulary = HashMap<String, Int>()
            for ((token, id) in fields.getValue("vocab").jsonObject) {
                vocabulary[names[token] ?: token] =
                    (id as? JsonPrimitive)?.takeIf { !it.isString }?.intOrNull?.takeIf { it in 0..LARGEST_ID }
                        ?: throw SerializationException("$token has the id $id")
            }
            return Bpe(
                vocabulary,
                fields.getValue("merges").jsonArray.map(::mergeOf).filter { (left, right) ->
                    names.isEmpty() || listOf(left, right, left + right).none { it in names }
                },
                unknown = fields.textOrNull("unk_token")?.let { names[it] ?: it },
                fuseUnknown = fields.flag("fuse_unk"),
                byteFallback = fields.flag("byte_fallback"),
                ignoreMerges = fields.flag("ignore_merges"),
            )
        }

        /** `"a b"`, or `["a", "b"]` as newer files have it. */
        private fun mergeOf(merge: JsonElement): Pair<String, String> {
            val parts =
                if (merge is JsonArray) {
                    merge.map { (it as JsonPrimitive).content }
                } else {
                    (merge as JsonPrimitive).content.split(' ')
                }
            if (parts.size != 2) throw SerializationException("a merge of ${parts.size} tokens")
            return parts[0] to parts[1]
        }

        /** The special tokens around a text, [TEXT] in its place. */
        private fun templateOf(
            fields: JsonObject?,
            ids: Map<String, Int>,
        ): List<Int> {
            val type = fields?.textOrNull("type")
            if (fields == null || type == "ByteLevel") return listOf(TEXT)
            if (type == "Sequence") {
                val parts = fields.objects("processors").map { templateOf(it, ids) }
                return parts.fold(listOf(TEXT)) { inner, outer ->
                    outer.flatMap { if (it == TEXT) inner else listOf(it) }
                }
            }
            if (type != "TemplateProcessing") throw unsupportedTokenizer("the post-processor $type")
            val named = fields.child("special_tokens")
            return fields.objects("single").flatMap { part ->
                val name = part.child("SpecialToken")?.text("id") ?: return@flatMap listOf(TEXT)
                val given = named?.child(name)?.get("ids")?.jsonArray?.map { (it as JsonPrimitive).int }
                given ?: listOf(ids[name] ?: throw SerializationException("no token $name"))
            }
        }
    }
}

internal fun JsonObject.child(name: String): JsonObject? =
    when (val value = this[name]) {
        null, is JsonNull -> null
        else -> value.jsonObject
    }

internal fun JsonObject.objects(name: String): List<JsonObject> =
    when (val value = this[name]) {
        null, is JsonNull -> emptyList()
        else -> value.jsonArray.map { it.jsonObject }
    }

internal fun JsonObject.textOrNull(name: String): String? = (this[name] as? JsonPrimitive)?.contentOrNull

internal fun JsonObject.text(name: String): String =
    textOrNull(name) ?: throw SerializationException("$name is missing")

internal fun JsonObject.number(name: String): Int =
    (this[name] as? JsonPrimitive)?.intOrNull ?: throw SerializationException("$name is no number")

internal fun JsonObject.flag(
    name: String,
    default: Boolean = false,
): Boolean = (this[name] as? JsonPrimitive)?.booleanOrNull ?: default
