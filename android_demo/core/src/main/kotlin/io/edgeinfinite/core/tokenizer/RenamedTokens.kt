package io.edgeinfinite.core.tokenizer

/**
 * Texts to the ids of a tokenizer, some of whose added tokens have other texts.
 *
 * It shares the tokenizer's model: reading one again takes long, and much memory, for a vocabulary of
 * 262,144. That is done only where the model makes a renamed token out of plain text, because it is
 * a word of it.
 *
 * @param names other texts by the added tokens' own; no vocabulary has them.
 * @param renamed reads the tokenizer again, with these texts.
 */
internal class RenamedTokens(
    tokenizer: Tokenizer,
    private val names: Map<String, String>,
    renamed: (Map<String, String>) -> Tokenizer,
) {
    private val others = tokenizer.addedTokens.filter { it.content in names }

    private val words = names.keys.mapNotNullTo(HashSet(), tokenizer::wordOf)

    private val sharing =
        tokenizer.withAddedTokens(
            // Numbers below zero tell an added token from a word of the model that has its number.
            others.mapIndexed { i, token -> token.copy(id = -1 - i, content = names.getValue(token.content)) } +
                (tokenizer.addedTokens - others.toSet()),
        )

    private val copy by lazy { renamed(names) }

    /** The text's tokens, without those that the tokenizer itself adds. */
    fun encode(text: String): IntArray {
        val ids = sharing.encode(text, addSpecialTokens = false)
        if (words.isNotEmpty() && ids.any { it in words }) return copy.encode(text, addSpecialTokens = false)
        for (i in ids.indices) if (ids[i] < 0) ids[i] = others[-1 - ids[i]].id
        return ids
    }
}
