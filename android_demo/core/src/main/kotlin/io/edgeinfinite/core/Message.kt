package io.edgeinfinite.core

import io.edgeinfinite.core.tools.ToolCall

/**
 * One message of a conversation.
 *
 * @property role see the constants.
 * @property content its text.
 * @property calls of tools, in an assistant's message; see `Talk`.
 * @property answers the call whose result it is, in a message of the role [TOOL].
 */
public data class Message
@JvmOverloads
constructor(
    val role: String,
    val content: String,
    val calls: List<ToolCall> = emptyList(),
    val answers: ToolCall? = null,
) {
    /** As chat templates know it. */
    internal fun fields(): Map<String, Any?> {
        val fields = linkedMapOf<String, Any?>("role" to role, "content" to content)
        if (calls.isNotEmpty()) fields["tool_calls"] = calls.map { it.declared() }
        if (answers != null) {
            fields["name"] = answers.name
            fields["tool_call_id"] = answers.id
        }
        return fields
    }

    /** The roles that templates know. */
    public companion object {
        public const val SYSTEM: String = "system"
        public const val USER: String = "user"
        public const val ASSISTANT: String = "assistant"
        public const val TOOL: String = "tool"

        /** What the tool said to a call. */
        @JvmStatic
        public fun result(
            call: ToolCall,
            content: String,
        ): Message = Message(TOOL, content, answers = call)
    }
}
