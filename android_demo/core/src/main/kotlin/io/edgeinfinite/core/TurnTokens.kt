package io.edgeinfinite.core

/**
 * The tokens of a conversation's next turn in the chat template, which depend on what it has read.
 *
 * @param system the system message before the first turn, null for none.
 */
internal class TurnTokens(
    private val session: Session,
    private val tokenizer: TextTokenizer,
    private val record: ConversationRecord,
    private val system: String?,
) {
    private val isFirst: Boolean get() = session.tokensRead == 0L && session.unread.isEmpty()

    /** Up to where the answer starts. */
    fun ofQuestion(question: String): IntArray =
        when {
            record.turnIsOpen -> tokenizer.encodeClosing(question)
            isFirst -> tokenizer.encodeChat(first(question))
            else -> tokenizer.encodeTurn(question)
        }

    /** What opens the turn, only a few tokens, and then the text; its question is still to come. */
    fun ofDocument(text: String): Pair<IntArray, IntArray> {
        if (record.turnIsOpen) return IntArray(0) to tokenizer.encodeMore(text)
        val opening = tokenizer.encodeOpening(text, isFirst, system)
        val (head, rest) = opening.tokens.withIndex().partition { it.index < opening.openingTokens }
        return ids(head) to ids(rest)
    }

    private fun first(question: String) =
        listOfNotNull(system?.let { Message(Message.SYSTEM, it) }, Message(Message.USER, question))

    private fun ids(part: List<IndexedValue<Int>>) = IntArray(part.size) { part[it].value }
}
