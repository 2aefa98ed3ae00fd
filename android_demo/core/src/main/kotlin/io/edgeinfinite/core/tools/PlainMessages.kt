package io.edgeinfinite.core.tools

import io.edgeinfinite.core.Message
import io.edgeinfinite.core.jinja.jsonOf

private const val BEFORE = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""

private const val BEHIND = """
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""

/**
 * A conversation in messages of text alone, for a chat template that knows no tools: they are said in the
 * system message, in Hermes' words. As Python's `tools/plain.py`.
 *
 * @param messages with calls and results.
 * @param tools those that the model is told of; none leaves the system message as it is.
 */
internal fun plainMessages(
    messages: List<Message>,
    tools: List<Tool>,
): List<Message> {
    val told = ArrayList<Message>()
    if (tools.isNotEmpty()) {
        val listed = tools.joinToString("\n") { jsonOf(it.declared()) }
        told += Message(Message.SYSTEM, BEFORE + listed + BEHIND)
    }
    var isBehindResult = false
    for (message in messages) {
        val isResult = message.role == Message.TOOL
        val plain = plain(message)
        when {
            isResult && isBehindResult -> {
                val before = told.removeAt(told.lastIndex)
                told += Message(before.role, "${before.content}\n${plain.content}")
            }
            plain.role == Message.SYSTEM && told.size == 1 && tools.isNotEmpty() ->
                told[0] = Message(Message.SYSTEM, "${plain.content}\n\n${told[0].content}")
            else -> told += plain
        }
        isBehindResult = isResult
    }
    return told
}

private fun plain(message: Message): Message {
    if (message.role == Message.TOOL) {
        return Message(Message.USER, "<tool_response>\n${message.content}\n</tool_response>")
    }
    if (message.calls.isEmpty()) return Message(message.role, message.content)
    val texts = (listOf(message.content) + message.calls.map(::written)).filter { it.isNotEmpty() }
    return Message(message.role, texts.joinToString(ToolForm.HERMES.between))
}

private fun written(call: ToolCall): String {
    val form = ToolForm.HERMES
    return "${form.begin}\n${jsonOf(mapOf("name" to call.name, "arguments" to call.given))}\n${form.end}"
}
