package io.edgeinfinite.core.tools

import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.jinja.JsonException
import io.edgeinfinite.core.jinja.parseJson
import java.util.UUID

/**
 * A function that the model may ask for.
 *
 * @property name of up to 128 letters, digits, `_`, `-` and `.`.
 * @property description for the model.
 * @property parameters the JSON schema of its arguments, an object, as text.
 * @throws EdgeInfiniteException the name isn't one, or the schema isn't JSON of an object's.
 */
public data class Tool
@JvmOverloads
constructor(
    val name: String,
    val description: String = "",
    val parameters: String = NO_PARAMETERS,
) {
    internal val schema: Map<*, *> = objectOf(parameters, "the parameters of the tool ${shown(name)}")

    init {
        if (!NAME.matches(name)) {
            throw wrong("the tool's name '${shown(name)}' isn't 1 to 128 of letters, digits, _, - and dots")
        }
        if (schema.containsKey("type") && schema["type"] != "object") {
            throw wrong("the parameters of the tool $name are no schema of an object; give one")
        }
    }

    internal val arguments: Arguments by lazy { Arguments(schema) }

    /** As chat templates know it. */
    internal fun declared(): Map<String, Any?> =
        mapOf(
            "type" to "function",
            "function" to mapOf("name" to name, "description" to description, "parameters" to schema),
        )

    private companion object {
        const val NO_PARAMETERS = """{"type": "object", "properties": {}}"""
        val NAME = Regex("[A-Za-z0-9_.-]{1,128}")
    }
}

/**
 * A call of a tool, in an assistant's message.
 *
 * @property name of the tool.
 * @property arguments a JSON object, as text. A model may write it wrongly, and no template takes it then.
 * @property id by which the call and its result are found, in 9 letters and digits: some templates take
 *   no other.
 */
public data class ToolCall
@JvmOverloads
constructor(
    val name: String,
    val arguments: String,
    val id: String = UUID.randomUUID().toString().replace("-", "").take(ID_LENGTH),
) {
    /** @throws EdgeInfiniteException the arguments aren't JSON of an object. */
    internal val given: Map<*, *> get() = objectOf(arguments, "the arguments of the call of ${shown(name)}")

    /** As chat templates know it. */
    internal fun declared(): Map<String, Any?> =
        mapOf("id" to id, "type" to "function", "function" to mapOf("name" to name, "arguments" to given))

    private companion object {
        const val ID_LENGTH = 9
    }
}

/** A part of an answer, as [AnswerReader] tells it. */
public sealed interface AnswerPart {
    /** A piece of the answer's text. */
    public data class Said(
        val text: String,
    ) : AnswerPart

    /** A piece of the model's reasoning, which isn't part of the answer. */
    public data class Thought(
        val text: String,
    ) : AnswerPart

    /** The answer calls the tool [name]; the call before it, if any, is whole. */
    public data class CallBegun(
        val name: String,
    ) : AnswerPart

    /** A piece of the call's arguments, which together are a JSON object. */
    public data class CallPiece(
        val text: String,
    ) : AnswerPart
}

/** A name in a message of one line. */
internal fun shown(name: String): String = name.take(MOST_SHOWN).replace(CONTROL, " ")

private const val MOST_SHOWN = 60
private val CONTROL = Regex("\\p{Cntrl}")

private fun objectOf(
    json: String,
    what: String,
): Map<*, *> =
    try {
        parseJson(json) as? Map<*, *> ?: throw wrong("$what are no JSON object; give one")
    } catch (error: JsonException) {
        throw wrong("$what: ${error.message}; give a JSON object", error)
    }

private fun wrong(
    message: String,
    cause: Throwable? = null,
) = EdgeInfiniteException(ErrorCode.INVALID_ARGUMENT, message, cause)
