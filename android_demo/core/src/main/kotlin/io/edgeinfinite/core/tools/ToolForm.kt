package io.edgeinfinite.core.tools

/**
 * How a checkpoint writes calls: `begin body end`. As Python's `tools/forms.py`.
 *
 * @property name of the form.
 * @property knownBy what a chat template of this form writes; all of them.
 * @property begin what begins a call; "" where the answer as a whole is one.
 * @property end what ends it.
 * @property between what stands between two calls.
 * @property body a call, or all of them, between [begin] and [end].
 */
internal class ToolForm(
    val name: String,
    val knownBy: List<String>,
    val begin: String,
    val end: String,
    val body: Body,
    val between: String = "\n",
) {
    /** Texts that an answer's text must show, also where they are special tokens. */
    val marks: List<String>
        get() = (listOf(begin, end) + body.marks).map { strip(it) }.filter { it.isNotEmpty() }

    companion object {
        /** Of Hermes and most Qwens; also what a checkpoint is told whose template knows no tools. */
        val HERMES =
            ToolForm("hermes", listOf("<tool_call>"), "<tool_call>", "</tool_call>", JsonCall)

        /** One row for each form; the first one whose texts a template writes is its form. */
        val ALL =
            listOf(
                ToolForm(
                    "gemma",
                    listOf("<start_function_call>"),
                    "<start_function_call>",
                    "<end_function_call>",
                    GemmaCall,
                    between = "",
                ),
                ToolForm(
                    "lfm2",
                    listOf("<|tool_call_start|>"),
                    "<|tool_call_start|>",
                    "<|tool_call_end|>",
                    PythonCalls,
                ),
                ToolForm(
                    "mistral-args",
                    listOf("[TOOL_CALLS]", "[ARGS]"),
                    "[TOOL_CALLS]",
                    "",
                    NamedJson("[ARGS]"),
                    between = "",
                ),
                ToolForm("mistral", listOf("[TOOL_CALLS]"), "[TOOL_CALLS]", "", JsonCalls),
                ToolForm(
                    "qwen-xml",
                    listOf("<tool_call>", "<function="),
                    "<tool_call>",
                    "</tool_call>",
                    XmlCall,
                ),
                HERMES,
                ToolForm("llama3", listOf("\"parameters\": ", "tools"), "", "", JsonCall),
            )

        /** The form of a chat template that knows tools; null where it isn't one of these. */
        fun of(template: String): ToolForm? {
            val written = template.replace("\\\"", "\"")
            return ALL.find { form -> form.knownBy.all { it in written } }
        }
    }
}
