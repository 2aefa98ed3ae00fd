package io.edgeinfinite.core

/**
 * A message in two parts: a document now, the question later, in the tokens of one prompt. As
 * Python's `open_message.py`, so that either side can ask about what the other has read.
 *
 * A chat template closes every message, so a document that is read before its question is known needs
 * the tokens up to where the question will stand, and later the tokens from there on. Both are cut
 * out of whole messages.
 *
 * @param encode the tokens of a user's message, which begins the conversation or not, after the system
 *   message in one that begins it.
 */
internal class OpenMessage(
    private val encode: (text: String, isFirst: Boolean, system: String?) -> IntArray,
) {
    /** The tokens of the stand-in document that don't depend on the question. */
    private val firstPart: List<Int> by lazy {
        val wholes = QUESTIONS.map { encode(DOCUMENT + SEPARATOR + it, true, null) }
        val shortest = wholes.minOf { it.size }
        val same = (0 until shortest).takeWhile { at -> wholes.all { it[at] == wholes[0][at] } }.size
        wholes[0].take(same)
    }

    /**
     * The tokens of a document at the beginning of a user's message, up to its question.
     *
     * @param isFirst whether the message begins the conversation.
     * @param system the system message before one that does, null for none.
     * @throws EdgeInfiniteException the template or the tokenizer joins the two.
     */
    fun beginning(
        document: String,
        isFirst: Boolean,
        system: String? = null,
    ): IntArray = withoutQuestion(encode(document.trim() + SEPARATOR + QUESTIONS[0], isFirst, system))

    /** The tokens of one more document in the same message. */
    fun more(document: String): IntArray =
        withoutQuestion(afterFirstPart(document.trim() + SEPARATOR + QUESTIONS[0], CANNOT_BE_CUT))

    /**
     * The tokens that follow: the question, up to where the answer starts.
     *
     * @throws EdgeInfiniteException the tokenizer joins the question's first characters with what
     *   stands before them.
     */
    fun rest(question: String): IntArray = afterFirstPart(question.trim(), JOINED)

    private fun afterFirstPart(
        text: String,
        otherwise: String,
    ): IntArray {
        val whole = encode(DOCUMENT + SEPARATOR + text, true, null)
        if (whole.take(firstPart.size) != firstPart) throw EdgeInfiniteException(ErrorCode.CHAT_TEMPLATE, otherwise)
        return whole.copyOfRange(firstPart.size, whole.size)
    }

    private fun withoutQuestion(whole: IntArray): IntArray {
        val rest = rest(QUESTIONS[0])
        val end = whole.size - rest.size
        if (end < 0 || !whole.copyOfRange(end, whole.size).contentEquals(rest)) {
            throw EdgeInfiniteException(ErrorCode.CHAT_TEMPLATE, CANNOT_BE_CUT)
        }
        return whole.copyOf(end)
    }

    private companion object {
        /** Between a document and what follows it in the same message. */
        const val SEPARATOR = "\n\n"
        const val DOCUMENT = "Hi."

        /** Stand-ins for the question; they begin as differently as questions can. */
        val QUESTIONS = listOf("What", "1", "(", "Ü")
        const val CANNOT_BE_CUT =
            "this artifact's chat template or tokenizer joins a document with its question; put " +
                "both into one message"
        const val JOINED =
            "the tokenizer joins the question's first character with the end of the document; begin " +
                "the question with a letter"
    }
}
