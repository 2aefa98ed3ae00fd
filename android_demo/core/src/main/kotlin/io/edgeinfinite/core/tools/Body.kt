package io.edgeinfinite.core.tools

import io.edgeinfinite.core.DEEPEST_JSON
import io.edgeinfinite.core.jinja.JsonException
import io.edgeinfinite.core.jinja.isPythonSpace
import io.edgeinfinite.core.jinja.parseJson

/** A body is none: what the model wrote stays text. */
internal class NoCallException(
    message: String,
) : Exception(message)

/** A tool's name and arguments. */
internal class Call(
    val name: String,
    val arguments: Map<*, *>,
)

/** A call whose arguments are told while they are written. */
internal class BegunCall(
    val name: String,
    val end: Int,
)

/**
 * What stands between the marks of a call, and how it is read. As Python's `tools/bodies.py`, without the
 * grammars there: nothing here makes a model write a call rightly.
 */
internal sealed class Body {
    /** Texts of it that may be special tokens. */
    open val marks: List<String> get() = emptyList()

    /**
     * A text up to where its arguments begin as JSON.
     *
     * @return the tool's name and where its arguments begin; null where a call is told whole, or not yet.
     */
    open fun begun(text: String): BegunCall? = null

    /**
     * The calls of a body.
     *
     * @throws NoCallException it isn't one.
     * @throws JsonException the same.
     */
    abstract fun calls(
        body: String,
        tools: Map<String, Tool>,
    ): List<Call>
}

/** `{"name": ..., "arguments": {...}}`; the arguments may be called parameters. */
internal object JsonCall : Body() {
    override fun begun(text: String): BegunCall? {
        val scan = Scan(text)
        if (!scan.spaced("{")) return null
        val begin = scan.at
        if (!scan.pair("\"type\"", "\"function\"")) scan.at = begin
        if (!(scan.spaced("\"name\"") && scan.spaced(":"))) return null
        scan.space()
        val name = scan.json() ?: return null
        if (!scan.spaced(",") || !(scan.spaced("\"arguments\"") || scan.spaced("\"parameters\""))) return null
        if (!scan.spaced(":")) return null
        scan.space()
        return if (scan.isNext("{")) BegunCall(name, scan.at) else null
    }

    override fun calls(
        body: String,
        tools: Map<String, Tool>,
    ): List<Call> = listOf(callOf(parseJson(body)))
}

/** A list of calls: ` [{"name": ..., "arguments": {...}}, ...]`. */
internal object JsonCalls : Body() {
    override fun calls(
        body: String,
        tools: Map<String, Tool>,
    ): List<Call> {
        val given = parseJson(body) as? List<*>
        if (given.isNullOrEmpty()) throw NoCallException("no list of calls")
        return given.map(::callOf)
    }
}

/**
 * `name[ARGS]{...}`.
 *
 * @param mark between the two.
 */
internal class NamedJson(
    private val mark: String,
) : Body() {
    override val marks: List<String> get() = listOf(mark)

    override fun begun(text: String): BegunCall? {
        val scan = Scan(text)
        scan.space()
        val name = scan.name() ?: return null
        if (!scan.spaced(mark)) return null
        scan.space()
        return if (scan.isNext("{")) BegunCall(name, scan.at) else null
    }

    override fun calls(
        body: String,
        tools: Map<String, Tool>,
    ): List<Call> {
        val arguments = parseJson(body.substringAfter(mark, ""))
        return listOf(callOf(mapOf("name" to strip(body.substringBefore(mark)), "arguments" to arguments)))
    }
}

/** `<function=name>`, and `<parameter=key>` each with a text or JSON. */
internal object XmlCall : Body() {
    private const val FUNCTION = "<function="
    private const val END = "</function>"
    private const val PARAMETER = "<parameter="
    private const val PARAMETER_END = "</parameter>"

    override fun calls(
        body: String,
        tools: Map<String, Tool>,
    ): List<Call> {
        val text = strip(body)
        val head = if (text.startsWith(FUNCTION)) headAt(text, FUNCTION.length) else null
        if (head == null || !text.endsWith(END) || head.second > text.length - END.length) {
            throw NoCallException("no function")
        }
        val name = strip(head.first)
        val arguments = tools[name]?.arguments
        val given = LinkedHashMap<String, Any?>()
        val inner = text.substring(head.second, text.length - END.length)
        var at = inner.indexOf(PARAMETER)
        while (at >= 0) {
            val key = headAt(inner, at + PARAMETER.length)
            if (key == null) {
                at = inner.indexOf(PARAMETER, at + 1)
                continue
            }
            val end = inner.indexOf(PARAMETER_END, key.second)
            if (end < 0) break
            val value = inner.substring(key.second, end).removePrefix("\n").removeSuffix("\n")
            given[key.first] = read(value, arguments?.kinds(key.first).orEmpty())
            at = inner.indexOf(PARAMETER, end + PARAMETER_END.length)
        }
        return listOf(Call(name, given))
    }

    /** A name that ends with `>`, and where what follows begins. */
    private fun headAt(
        text: String,
        start: Int,
    ): Pair<String, Int>? {
        val end = text.indexOf('>', start)
        if (end <= start) return null
        val name = text.substring(start, end)
        return if ('\n' in name) null else name to end + 1
    }

    /** An argument's value: JSON, unless it may be a text; where it may be null, a text that says so is. */
    private fun read(
        value: String,
        kinds: Set<String>,
    ): Any? {
        val isNull = strip(value) == "null" && "null" in kinds
        return if (isNull || (kinds.isNotEmpty() && "string" !in kinds)) parseJson(value) else value
    }
}

/** `call:name{key:<escape>text<escape>,other:1}`. */
internal object GemmaCall : Body() {
    private const val CALL = "call:"
    private const val ESCAPE = "<escape>"

    override val marks: List<String> get() = listOf(ESCAPE)

    override fun calls(
        body: String,
        tools: Map<String, Tool>,
    ): List<Call> {
        val scan = Scan(body)
        val name = (if (scan.spaced(CALL)) scan.name() else null) ?: throw NoCallException("no call")
        scan.space()
        val value = value(scan, 0)
        scan.space()
        if (!scan.isAtEnd || value !is Map<*, *>) throw NoCallException("more than a call")
        return listOf(Call(name, value))
    }

    private fun value(
        scan: Scan,
        depth: Int,
    ): Any? {
        if (depth > DEEPEST_JSON) throw NoCallException("nested too deeply")
        if (scan.take(ESCAPE)) return scan.upTo(ESCAPE)
        return when {
            scan.take("{") -> {
                val pairs = LinkedHashMap<String, Any?>()
                items(scan, "}") {
                    val key = strip(scan.upTo(":")).removePrefix(ESCAPE).removeSuffix(ESCAPE)
                    pairs[key] = value(scan, depth + 1)
                }
                pairs
            }
            scan.take("[") -> ArrayList<Any?>().also { items(scan, "]") { it += value(scan, depth + 1) } }
            else -> plain(strip(scan.whileNot(",}]")))
        }
    }

    private fun items(
        scan: Scan,
        close: String,
        item: () -> Unit,
    ) {
        while (!scan.take(close)) {
            item()
            if (!scan.take(",") && !scan.isNext(close)) throw NoCallException("unclosed")
        }
    }

    private fun plain(text: String): Any? =
        try {
            parseJson(text)
        } catch (_: JsonException) {
            text
        }
}

/** Reads a text from its start. */
private class Scan(
    private val text: String,
) {
    var at = 0

    val isAtEnd: Boolean get() = at >= text.length

    fun isNext(word: String): Boolean = text.startsWith(word, at)

    fun take(word: String): Boolean = isNext(word).also { if (it) at += word.length }

    fun space() {
        while (!isAtEnd && isPythonSpace(text[at])) at += 1
    }

    /** [take] behind white space. */
    fun spaced(word: String): Boolean {
        val start = at
        space()
        return take(word).also { if (!it) at = start }
    }

    /** `key: value,`. */
    fun pair(
        key: String,
        value: String,
    ): Boolean = spaced(key) && spaced(":") && spaced(value) && spaced(",")

    /** A string of JSON; "" where it is none, but has its quotes. */
    fun json(): String? {
        if (!isNext("\"")) return null
        var end = at + 1
        while (end < text.length && text[end] != '"') {
            if (text[end] == '\\' && text.getOrNull(end + 1) == '\n') return null
            end += if (text[end] == '\\') 2 else 1
        }
        if (end >= text.length) return null
        val written = text.substring(at, end + 1)
        at = end + 1
        return try {
            parseJson(written) as String
        } catch (_: JsonException) {
            ""
        }
    }

    /** Letters and digits of any script, `_`, `.` and `-`. */
    fun name(): String? {
        val start = at
        while (!isAtEnd && isNameAt(text, at)) at += Character.charCount(text.codePointAt(at))
        return if (at > start) text.substring(start, at) else null
    }

    /** The text before [mark], which is skipped. */
    fun upTo(mark: String): String {
        val end = text.indexOf(mark, at)
        if (end < 0) throw NoCallException("$mark is missing")
        return text.substring(at, end).also { at = end + mark.length }
    }

    fun whileNot(ends: String): String {
        val start = at
        while (!isAtEnd && text[at] !in ends) at += 1
        return text.substring(start, at)
    }
}

private fun isNameAt(
    text: String,
    at: Int,
): Boolean = text[at] in "_.-" || isWordAt(text, at)

/** Whether a letter or a number of any script stands there, as in Python's `\w`. */
internal fun isWordAt(
    text: String,
    at: Int,
): Boolean {
    val point = text.codePointAt(at)
    return point == '_'.code || Character.isLetter(point) || Character.getType(point) in NUMBERS
}

private val NUMBERS =
    setOf(Character.DECIMAL_DIGIT_NUMBER, Character.LETTER_NUMBER, Character.OTHER_NUMBER).map { it.toInt() }

/** Python's `str.strip`. */
internal fun strip(text: String): String = text.trim(::isPythonSpace)

/**
 * A call as JSON has it.
 *
 * @throws NoCallException it has no name and arguments.
 */
internal fun callOf(given: Any?): Call {
    val fields = given as? Map<*, *> ?: throw NoCallException("no object")
    val name = fields["name"] as? String
    val arguments = if (fields.containsKey("arguments")) fields["arguments"] else fields["parameters"]
    val read = if (arguments is String) parseJson(arguments) else arguments
    if (name.isNullOrEmpty() || !isName(name) || read !is Map<*, *>) throw NoCallException("no name and arguments")
    return Call(name, read)
}

private fun isName(name: String): Boolean =
    name.indices.all { (it > 0 && name[it].isLowSurrogate() && name[it - 1].isHighSurrogate()) || isNameAt(name, it) }
