package io.edgeinfinite.core.jinja

/**
 * The statements that chat templates are made of: `if`, `for`, `set`, `macro`, `break`, `continue`,
 * `raw`, and `generation`, which only passes its content on.
 *
 * @param source the template's text.
 */
internal class TemplateParser(
    source: String,
) {
    private val parts = Lexer(source).parts()
    private var at = 0

    /** The tag that ended the last block. */
    private var ending = ExpressionParser(emptyList())

    /**
     * @throws TemplateException the template has a syntax error, or a statement that isn't here.
     */
    fun parse(): List<Statement> = block().also { if (at < parts.size) fail("a tag too many") }

    /** Statements up to one of the tags [ends], which is read into [ending]; to the end if none. */
    private fun block(vararg ends: String): List<Statement> {
        val statements = ArrayList<Statement>()
        while (at < parts.size) {
            when (val part = parts[at++]) {
                is Part.Text -> statements += Statement.Text(part.text)
                is Part.Output -> {
                    val tag = ExpressionParser(part.tokens)
                    statements += Statement.Output(tag.tuple())
                    finish(tag)
                }
                is Part.Tag -> {
                    val tag = ExpressionParser(part.tokens)
                    val name = tag.name()
                    if (name in ends) {
                        ending = tag
                        lastEnd = name
                        return statements
                    }
                    statements += statement(name, tag)
                }
            }
        }
        if (ends.isNotEmpty()) fail("${ends.last()} is missing")
        return statements
    }

    private var lastEnd = ""

    private fun statement(
        name: String,
        tag: ExpressionParser,
    ): List<Statement> =
        when (name) {
            "if" -> listOf(conditional(tag))
            "for" -> listOf(loop(tag))
            "set" -> listOf(assignment(tag))
            "macro" -> listOf(macro(tag))
            "generation" -> {
                finish(tag)
                block("endgeneration").also { finish(ending) }
            }
            "break" -> listOf(Statement.Break).also { finish(tag) }
            "continue" -> listOf(Statement.Continue).also { finish(tag) }
            else -> fail("unknown tag '$name'")
        }

    private fun conditional(tag: ExpressionParser): Statement {
        val branches = ArrayList<Pair<Expression, List<Statement>>>()
        var condition = tag.tuple()
        finish(tag)
        while (true) {
            branches += condition to block("elif", "else", "endif")
            if (lastEnd != "elif") break
            condition = ending.tuple()
            finish(ending)
        }
        finish(ending)
        val otherwise = if (lastEnd == "else") block("endif").also { finish(ending) } else emptyList()
        return Statement.If(branches, otherwise)
    }

    private fun loop(tag: ExpressionParser): Statement {
        val targets = arrayListOf<String>()
        val inParentheses = tag.take("(")
        do targets += tag.name() while (tag.take(","))
        if (inParentheses) tag.expect(")")
        tag.expect("in")
        val iterable = tag.or()
        val condition = if (tag.take("if")) tag.expression() else null
        finish(tag)
        val body = block("else", "endfor")
        finish(ending)
        val otherwise = if (lastEnd == "else") block("endfor").also { finish(ending) } else emptyList()
        return Statement.For(targets, iterable, condition, body, otherwise)
    }

    private fun assignment(tag: ExpressionParser): Statement {
        val targets = arrayListOf(target(tag))
        while (tag.take(",")) targets += target(tag)
        if (tag.take("=")) {
            val value = tag.tuple()
            finish(tag)
            return Statement.Assign(targets, value)
        }
        val filters = ArrayList<Pair<String, CallArguments>>()
        while (tag.take("|")) filters += tag.filter()
        finish(tag)
        val body = block("endset")
        finish(ending)
        return Statement.AssignBlock(targets.single(), filters, body)
    }

    private fun target(tag: ExpressionParser): Expression {
        val name = Expression.Name(tag.name())
        return if (tag.take(".")) Expression.Attribute(name, tag.name()) else name
    }

    private fun macro(tag: ExpressionParser): Statement {
        val name = tag.name()
        val parameters = ArrayList<Pair<String, Expression?>>()
        tag.expect("(")
        while (!tag.take(")")) {
            val parameter = tag.name()
            parameters += parameter to if (tag.take("=")) tag.expression() else null
            if (!tag.isNext(")")) tag.expect(",")
        }
        finish(tag)
        val body = block("endmacro")
        ending.take(name)
        finish(ending)
        return Statement.Macro(name, parameters, body)
    }

    private fun finish(tag: ExpressionParser) {
        if (!tag.isAtEnd) fail("something is too much ${tag.where()}")
    }

    private fun fail(message: String): Nothing = throw TemplateException(message)
}
