package io.edgeinfinite.core.jinja

/** What a template consists of before its tags are understood. */
internal sealed interface Part {
    data class Text(
        val text: String,
    ) : Part

    /** `{{ ... }}` */
    data class Output(
        val tokens: List<Token>,
    ) : Part

    /** `{% ... %}` */
    data class Tag(
        val tokens: List<Token>,
    ) : Part
}

/** A token of an expression. */
internal data class Token(
    val kind: Kind,
    val text: String,
) {
    enum class Kind { NAME, STRING, INTEGER, FLOAT, OPERATOR }
}

/**
 * Cuts a template into text and tags, with the settings that transformers gives jinja2: one newline
 * after a tag goes (`trim_blocks`), and so does indentation before one (`lstrip_blocks`).
 *
 * @param source the template's text.
 */
internal class Lexer(
    source: String,
) {
    private val source = source.replace("\r\n", "\n").replace('\r', '\n').removeSuffix("\n")
    private val parts = ArrayList<Part>()
    private var at = 0

    /** Whether what stands at [at] begins a line. */
    private var atLineStart = true

    /** `-%}` came before: white space that follows goes. */
    private var stripsNext = false

    /**
     * @throws TemplateException a tag has no end, or holds a character that means nothing.
     */
    fun parts(): List<Part> {
        while (at < source.length) {
            val open = nextOpen()
            if (open < 0) {
                addText(source.substring(at), null)
                break
            }
            addText(source.substring(at, open), source.substring(open, minOf(open + 3, source.length)))
            at = open
            tag()
        }
        return parts
    }

    private fun nextOpen(): Int {
        var open = source.indexOf('{', at)
        while (open >= 0 && !(open + 1 < source.length && source[open + 1] in "{%#")) {
            open = source.indexOf('{', open + 1)
        }
        return open
    }

    private fun addText(
        raw: String,
        tag: String?,
    ) {
        var text = if (stripsNext) raw.trimStart(::isPythonSpace) else raw
        val sign = tag?.getOrNull(2)
        if (sign == '-') {
            text = text.trimEnd(::isPythonSpace)
        } else if (tag != null && tag[1] != '{' && sign != '+') {
            val line = text.lastIndexOf('\n') + 1
            val startsLine = line > 0 || (atLineStart && text.length == raw.length)
            if (startsLine && text.substring(line).all(::isPythonSpace)) text = text.substring(0, line)
        }
        stripsNext = false
        if (text.isNotEmpty()) parts += Part.Text(text)
    }

    private fun tag() {
        val kind = source[at + 1]
        val sign = source.getOrNull(at + 2)
        at += if (sign == '-' || (sign == '+' && kind != '{')) 3 else 2
        if (kind == '#') {
            val end = source.indexOf("#}", at)
            if (end < 0) throw TemplateException("a comment has no end")
            val last = source[maxOf(end - 1, at)]
            at = end
            close("#}", last)
            return
        }
        val close = if (kind == '{') "}}" else "%}"
        val tokens = ArrayList<Token>()
        while (true) {
            while (at < source.length && source[at].isWhitespace()) at += 1
            if (at >= source.length) throw TemplateException("a tag has no end: expected $close")
            val sign = source[at].takeIf { it in "-+" && source.startsWith(close, at + 1) }
            if (sign != null) at += 1
            // `}}` may also end two dicts.
            if (source.startsWith(close, at) && (sign != null || balanced(tokens))) {
                close(close, sign)
                break
            }
            tokens += token()
        }
        if (kind == '%' && tokens.singleOrNull()?.text == "raw") return raw()
        parts += if (kind == '{') Part.Output(tokens) else Part.Tag(tokens)
    }

    private fun balanced(tokens: List<Token>): Boolean {
        val operators = tokens.filter { it.kind == Token.Kind.OPERATOR }
        return operators.count { it.text == "{" } == operators.count { it.text == "}" }
    }

    private fun close(
        mark: String,
        sign: Char?,
    ) {
        at += mark.length
        stripsNext = sign == '-'
        atLineStart = false
        if (mark != "}}" && sign != '-' && sign != '+' && source.startsWith("\n", at)) {
            at += 1
            atLineStart = true
        }
    }

    private fun raw() {
        val end = Regex("\\{%[-+]?\\s*endraw\\s*([-+]?)%}").find(source, at)
        if (end == null) throw TemplateException("a raw block has no end")
        addText(source.substring(at, end.range.first), end.value)
        at = end.range.last + 1
        close("", end.groupValues[1].firstOrNull())
    }

    private fun token(): Token {
        val start = at
        val first = source[at]
        if (first == '\'' || first == '"') return string(first)
        if (first.isLetter() || first == '_') {
            while (at < source.length && (source[at].isLetterOrDigit() || source[at] == '_')) at += 1
            return Token(Token.Kind.NAME, source.substring(start, at))
        }
        if (first.isDigit()) return number()
        val operator =
            OPERATORS.find { source.startsWith(it, at) }
                ?: throw TemplateException("unexpected character '$first'")
        at += operator.length
        return Token(Token.Kind.OPERATOR, operator)
    }

    private fun number(): Token {
        val match = checkNotNull(NUMBER.matchAt(source, at))
        at = match.range.last + 1
        val isFloat = match.value.any { it in ".eE" }
        return Token(if (isFloat) Token.Kind.FLOAT else Token.Kind.INTEGER, match.value.replace("_", ""))
    }

    private fun string(quote: Char): Token {
        val text = StringBuilder()
        at += 1
        while (true) {
            val unit = source.getOrNull(at++) ?: throw TemplateException("a string has no end")
            if (unit == quote) return Token(Token.Kind.STRING, text.toString())
            if (unit == '\\') escape(text) else text.append(unit)
        }
    }

    private fun escape(text: StringBuilder) {
        val letter = source.getOrNull(at++) ?: throw TemplateException("a string has no end")
        val digits = mapOf('x' to 2, 'u' to 4, 'U' to 8)[letter]
        if (digits != null) {
            val code = source.substring(at, minOf(at + digits, source.length)).toIntOrNull(16)
            text.appendCodePoint(code ?: throw TemplateException("a broken escape in a string"))
            at += digits
            return
        }
        when (letter) {
            'n' -> text.append('\n')
            't' -> text.append('\t')
            'r' -> text.append('\r')
            '\\', '\'', '"' -> text.append(letter)
            '\n' -> Unit
            else -> text.append('\\').append(letter)
        }
    }

    private companion object {
        val NUMBER = Regex("\\d[\\d_]*(\\.\\d+)?([eE][+-]?\\d+)?")
        val OPERATORS =
            listOf("**", "//", "==", "!=", "<=", ">=") +
                "+-*/%~<>=().,[]{}|:".map { it.toString() }
    }
}

/** Python's `str.isspace`. */
internal fun isPythonSpace(unit: Char): Boolean =
    unit in '\u001c'..'\u001f' || io.edgeinfinite.core.tokenizer.Characters.isWhiteSpace(unit.code)
