package io.edgeinfinite.core

import io.edgeinfinite.core.tokenizer.TokenBytes
import io.edgeinfinite.core.tokenizer.Tokenizer
import io.edgeinfinite.core.tokenizer.decodeUtf8
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import java.io.File
import java.io.IOException

/**
 * The artifact's tokenizer and chat template; made by [load]. Thread-safe.
 *
 * Control tokens spelled out in a message or a long text stay text; only the template writes real
 * ones. [encodeText], which uses no template, reads them as real ones.
 *
 * @param namedStopIds tokens that the checkpoint's settings name as ends of an answer.
 * @param parse reads the tokenizer, with other texts for some of its tokens.
 */
public class TextTokenizer internal constructor(
    private val tokenizer: Tokenizer,
    private val chatTemplate: ChatTemplate?,
    namedStopIds: Set<Int>,
    parse: (Map<String, String>) -> Tokenizer,
) {
    /** Tokens that end an answer; those of the template too, which artifacts made earlier don't list. */
    public val stopIds: Set<Int> = namedStopIds + (chatTemplate?.let { turnEnds(it, tokenizer) } ?: emptySet())

    private val control = ControlTokens(tokenizer, stopIds, chatTemplate?.source.orEmpty(), parse)

    private val bytes = TokenBytes(tokenizer)

    private val openMessage =
        OpenMessage { text, isFirst, system ->
            apart(text, system) { marked, encode ->
                val turn = openTurn(isFirst, marked.getOrNull(1))
                encodeAfter(turn.head, turn.opening + marked[0] + turn.closing, encode)
            }
        }

    /** False for the artifact of a base model, which only continues text. */
    public val hasChatTemplate: Boolean get() = chatTemplate != null

    /**
     * The text without a template, with the special tokens that the tokenizer adds. A text that spells
     * its beginning (`<s>`) itself gets no second one.
     */
    public fun encodeText(text: String): IntArray {
        val ids = tokenizer.encode(text, addSpecialTokens = true)
        val isTwice = ids.size > 1 && ids[0] == ids[1] && tokenizer.isSpecial(ids[0])
        if (!isTwice || tokenizer.encode(text, addSpecialTokens = false).size == ids.size) return ids
        return ids.copyOfRange(1, ids.size)
    }

    /**
     * A whole conversation, ending where the assistant's next answer starts.
     *
     * @throws EdgeInfiniteException there is no chat template, or it refuses the conversation.
     */
    public fun encodeChat(messages: List<Message>): IntArray = encodeChat(messages.map { it.fields() }, emptyMap())

    /** [encodeChat]; [more] is what else the template is given: `tools`, and switches of its own. */
    internal fun encodeChat(
        messages: List<Map<String, Any?>>,
        more: Map<String, Any?>,
    ): IntArray =
        apart(messages, more) { marked, given, encode ->
            encode(template().render(marked, opens = true, more = given))
        }

    /** [encodeTurn] for any messages; [more] as in [encodeChat]. */
    internal fun encodeAfter(
        messages: List<Map<String, Any?>>,
        more: Map<String, Any?>,
    ): IntArray =
        apart(messages, more) { marked, given, encode ->
            val (head, tail) = template().renderAfter(marked, given)
            encodeAfter(head, tail, encode)
        }

    /**
     * The tokens to append after an answer for the user's next message [text].
     *
     * They begin with the template's own end of the answer, so don't append the token that stopped
     * the answer ([Generator] doesn't). An answer that was cut short is closed in the same way.
     *
     * @throws EdgeInfiniteException there is no chat template, or it rewrites earlier turns.
     */
    public fun encodeTurn(text: String): IntArray =
        apart(text) { marked, encode ->
            val (head, tail) = template().renderTurn(marked[0])
            encodeAfter(head, tail, encode)
        }

    /**
     * A user's turn in two parts, so that a long text can be read before the question is known.
     *
     * Between the text and what follows in the turn stands a blank line, which is part of the tokens.
     *
     * @param text the long text, with which the turn begins.
     * @param isFirst whether the conversation begins with it; else it follows an answer.
     * @param system the system message before a turn that begins the conversation, null for none.
     * @return the tokens to append now: the turn's opening and the text.
     * @throws EdgeInfiniteException as [encodeTurn], or the turn can't be cut in two.
     */
    public fun encodeOpening(
        text: String,
        isFirst: Boolean,
        system: String? = null,
    ): Opening {
        val tokens = openMessage.beginning(text, isFirst, system)
        val opening =
            apart(system.orEmpty()) { marked, encode ->
                openTurn(isFirst, system?.let { marked[0] }).let { encodeAfter(it.head, it.opening, encode) }
            }
        val shared = tokens.zip(opening).takeWhile { (one, other) -> one == other }.size
        return Opening(tokens, shared)
    }

    /** More text for a turn that [encodeOpening] began. */
    public fun encodeMore(text: String): IntArray = openMessage.more(text)

    /**
     * The rest of a turn that [encodeOpening] began: the question, and the answer's start.
     *
     * @throws EdgeInfiniteException as [encodeTurn], or the question can't be told apart.
     */
    public fun encodeClosing(question: String): IntArray = openMessage.rest(question)

    /** The text of tokens, without special tokens; broken UTF-8 reads as U+FFFD. */
    public fun decode(ids: IntArray): String = tokenizer.decode(ids, skipSpecialTokens = true)

    /** A new decoder for one answer, token by token. */
    public fun stream(): TextStream = stream(begins = true)

    /**
     * [stream]; without [begins] for an answer that goes on in the middle of a text, whose first
     * space must stay.
     */
    public fun stream(begins: Boolean): TextStream = stream(begins, emptySet())

    /** [stream]; the texts of the special tokens [shown] aren't left out. */
    internal fun stream(
        begins: Boolean,
        shown: Set<Int>,
    ): TextStream = TextStream(bytes, begins, shown)

    private class OpenTurn(
        val head: String,
        val opening: String,
        val closing: String,
    )

    private fun openTurn(
        isFirst: Boolean,
        system: String?,
    ): OpenTurn {
        val first = listOfNotNull(system?.let { Message(Message.SYSTEM, it) }, Message(Message.USER, MARK))
        val (head, turn) =
            if (isFirst) ChatTemplate.RenderedTurn("", template().render(first)) else template().renderTurn(MARK)
        val at = turn.indexOf(MARK)
        if (at <
            0
        ) {
            throw EdgeInfiniteException(
                ErrorCode.CHAT_TEMPLATE,
                "this artifact's chat template drops the user's text",
            )
        }
        return OpenTurn(head, turn.take(at), turn.drop(at + MARK.length))
    }

    /** The tokens of [tail] after [head]; the tokens of [head] aren't returned. */
    private fun encodeAfter(
        head: String,
        tail: String,
        encode: (String) -> IntArray,
    ): IntArray {
        // The whole is encoded and its start cut off, because some tokenizers treat the first
        // characters of a text differently. If a token crosses the cut, the tail is encoded alone,
        // as the sampled answer's last token is alone too.
        val start = encode(head)
        val whole = encode(head + tail)
        val follows = whole.size >= start.size && start.indices.all { whole[it] == start[it] }
        return if (follows) whole.copyOfRange(start.size, whole.size) else encode(tail)
    }

    /** Gives [use] the texts of people, without the nulls, and the encoder for what the template makes of them. */
    private fun <T> apart(
        vararg texts: String?,
        use: (texts: List<String>, encode: (String) -> IntArray) -> T,
    ): T {
        val given = texts.filterNotNull()
        if (given.none(control::areSpelledIn)) return use(given, ::encode)
        return use(given.map(control::mark), control::encode)
    }

    private fun apart(
        messages: List<Map<String, Any?>>,
        more: Map<String, Any?>,
        use: (List<Map<String, Any?>>, Map<String, Any?>, (String) -> IntArray) -> IntArray,
    ): IntArray {
        if (!control.areSpelledAmid(messages) && !control.areSpelledAmid(more)) return use(messages, more, ::encode)
        return use(messages.map(control::mark), control.markAll(more), control::encode)
    }

    /** The chat template's source; "" without one. */
    internal val templateSource: String get() = chatTemplate?.source.orEmpty()

    /** The token of a text that answers leave out, null if it is none. */
    internal fun specialIdOf(text: String): Int? = tokenizer.idOf(text)?.takeIf(tokenizer::isSpecial)

    /** The text of tokens, special ones among them. */
    internal fun spelled(ids: IntArray): String =
        decodeUtf8(ids.fold(ByteArray(0)) { before, id -> before + bytes.of(id) })

    private fun encode(text: String): IntArray = tokenizer.encode(text, addSpecialTokens = false)

    private fun template(): ChatTemplate =
        chatTemplate ?: throw EdgeInfiniteException(
            ErrorCode.NO_CHAT_TEMPLATE,
            "the artifact has no chat template (a base model?); it only continues text",
        )

    /**
     * The first part of a turn.
     *
     * @property tokens the whole part.
     * @property openingTokens how many of the first tokens are the template's.
     */
    public class Opening(
        public val tokens: IntArray,
        public val openingTokens: Int,
    )

    public companion object {
        private const val MARK = "EDGEINFINITE-TEXT-5C1E"

        /**
         * Reads tokenizer.json, tokenizer_config.json, generation_config.json, chat_template.jinja.
         *
         * The chat template may be missing: a base model has none.
         *
         * @param vocabulary of the model, which the tokens that end an answer must be in; null where
         *   it isn't known.
         * @throws EdgeInfiniteException a file is missing, truncated, not what it should be, or the
         *   tokenizer is of a kind that this runtime doesn't have.
         */
        public suspend fun load(
            folder: File,
            vocabulary: Int? = null,
        ): TextTokenizer = withContext(Dispatchers.IO) { read(folder, vocabulary) }

        /** As [load], on the calling thread. */
        internal fun read(
            folder: File,
            vocabulary: Int? = null,
        ): TextTokenizer {
            val file = File(folder, "tokenizer.json")
            val parse = { names: Map<String, String> ->
                try {
                    Tokenizer.parse(readJson(file), names)
                } catch (error: SerializationException) {
                    throw damaged(file, error.message.orEmpty(), error)
                }
            }
            val tokenizer = parse(emptyMap())
            val settingsOfTokens = File(folder, "tokenizer_config.json")
            val config = readObject(settingsOfTokens)
            val special = specialTokens(settingsOfTokens, config)
            val end = special["eos_token"]?.let(tokenizer::idOf)
            val settings = File(folder, "generation_config.json")
            val stopIds =
                try {
                    stopIds(readObject(settings), vocabulary) + listOfNotNull(end)
                } catch (error: IllegalArgumentException) {
                    throw damaged(settings, error.message.orEmpty(), error)
                }
            val template = templateSource(File(folder, "chat_template.jinja"), config)
            return TextTokenizer(tokenizer, template?.let { ChatTemplate(it, special) }, stopIds, parse)
        }

        /** `{"bos_token": "<s>", ...}`; a token is a string, or an object with it as `content`. */
        private fun specialTokens(
            file: File,
            config: JsonObject,
        ): Map<String, String> {
            val names = listOf("bos", "eos", "unk", "sep", "pad", "cls", "mask").map { "${it}_token" }
            val found = names.mapNotNull { name -> contentOf(config[name])?.let { name to it } }.toMap()
            found.entries.find { !isUnicode(it.value) }?.let { throw damaged(file, "${it.key} isn't valid Unicode") }
            return found
        }

        /** Whether no half of a surrogate pair stands alone, which JSON can spell and UTF-8 can't. */
        private fun isUnicode(text: String): Boolean = Charsets.UTF_8.newEncoder().canEncode(text)

        private fun contentOf(token: JsonElement?): String? {
            val text = if (token is JsonObject) token["content"] else token
            return (text as? JsonPrimitive)?.takeIf { it.isString }?.content
        }

        private fun templateSource(
            file: File,
            config: JsonObject,
        ): String? = if (file.exists()) readText(file) else contentOf(config["chat_template"])

        private fun readObject(file: File): JsonObject {
            val value =
                try {
                    Json.parseToJsonElement(readJson(file))
                } catch (error: SerializationException) {
                    throw damaged(file, error.message.orEmpty().lineSequence().first(), error)
                }
            return value as? JsonObject ?: throw damaged(file, "a JSON object was expected")
        }

        private fun readJson(file: File): String =
            readText(file).also { text -> deepJson(text)?.let { throw damaged(file, it) } }

        private fun readText(file: File): String {
            if (!file.isFile) {
                throw EdgeInfiniteException(
                    ErrorCode.ARTIFACT_DAMAGED,
                    "${file.name} is missing: the artifact is incomplete; copy or export it again",
                )
            }
            return try {
                file.readBytes().decodeToString(throwOnInvalidSequence = true)
            } catch (error: IOException) { // CharacterCodingException is one
                throw damaged(file, error.message ?: "not UTF-8", error)
            }
        }

        private fun damaged(
            file: File,
            reason: String,
            cause: Throwable? = null,
        ) = EdgeInfiniteException(
            ErrorCode.ARTIFACT_DAMAGED,
            "${file.name} is damaged (${reason.lineSequence().first()}); export the artifact again",
            cause,
        )
    }
}
