package io.edgeinfinite.core.jinja

import io.edgeinfinite.core.jinja.Token.Kind

/**
 * Expressions with jinja2's precedence.
 *
 * @param tokens of one tag.
 */
internal open class ExpressionParser(
    private val tokens: List<Token>,
) {
    private var at = 0

    /** Whether all tokens were read. */
    val isAtEnd: Boolean get() = at >= tokens.size

    /** A whole expression, `a if b else c` included. */
    fun expression(): Expression {
        var value = or()
        while (take("if")) {
            val condition = or()
            val otherwise = if (take("else")) expression() else null
            value = Expression.Conditional(condition, value, otherwise)
        }
        return value
    }

    /** An expression, or several with commas between: a tuple. */
    fun tuple(): Expression {
        val first = expression()
        if (!isNext(",")) return first
        val items = arrayListOf(first)
        while (take(",") && !isAtEnd) items += expression()
        return Expression.ListOf(items)
    }

    /** Takes the next token if it is this name or operator. */
    fun take(text: String): Boolean {
        if (!isNext(text)) return false
        at += 1
        return true
    }

    fun expect(text: String) {
        if (!take(text)) throw TemplateException("expected '$text' ${where()}")
    }

    fun name(): String {
        val token = tokens.getOrNull(at)
        if (token?.kind != Kind.NAME) throw TemplateException("expected a name ${where()}")
        at += 1
        return token.text
    }

    fun isNext(
        text: String,
        ahead: Int = 0,
    ): Boolean {
        val token = tokens.getOrNull(at + ahead) ?: return false
        return token.text == text && (token.kind == Kind.NAME || token.kind == Kind.OPERATOR)
    }

    fun where(): String = tokens.getOrNull(at)?.let { "before '${it.text}'" } ?: "at the end of a tag"

    /** What can stand without an operator before it; also without an `if` after it. */
    fun or(): Expression {
        var left = and()
        while (take("or")) left = Expression.Binary("or", left, and())
        return left
    }

    private fun and(): Expression {
        var left = not()
        while (take("and")) left = Expression.Binary("and", left, not())
        return left
    }

    private fun not(): Expression = if (take("not")) Expression.Unary("not", not()) else comparison()

    private fun comparison(): Expression {
        val left = sum()
        val rest = ArrayList<Pair<String, Expression>>()
        while (true) {
            val operator = COMPARISONS.find(::take)
            when {
                operator != null -> rest += operator to sum()
                isNext("not") && isNext("in", 1) -> {
                    at += 2
                    rest += "not in" to sum()
                }
                else -> break
            }
        }
        return if (rest.isEmpty()) left else Expression.Comparison(left, rest)
    }

    private fun sum(): Expression = binary(listOf("+", "-"), ::concatenation)

    private fun concatenation(): Expression = binary(listOf("~"), ::product)

    private fun product(): Expression = binary(listOf("*", "/", "//", "%"), ::power)

    private fun power(): Expression = binary(listOf("**")) { unary(withFilters = true) }

    private fun binary(
        operators: List<String>,
        operand: () -> Expression,
    ): Expression {
        var left = operand()
        while (true) {
            val operator = operators.find(::take) ?: return left
            left = Expression.Binary(operator, left, operand())
        }
    }

    private fun unary(withFilters: Boolean): Expression {
        val sign = listOf("-", "+").find(::take)
        val value =
            if (sign != null) Expression.Unary(sign, unary(withFilters = false)) else postfix(primary())
        return if (withFilters) filtered(value) else value
    }

    private fun primary(): Expression {
        val token = tokens.getOrNull(at) ?: throw TemplateException("an expression is missing")
        at += 1
        return when (token.kind) {
            Kind.STRING -> {
                val text = StringBuilder(token.text)
                while (tokens.getOrNull(at)?.kind == Kind.STRING) text.append(tokens[at++].text)
                Expression.Literal(text.toString())
            }
            Kind.INTEGER -> Expression.Literal(token.text.toLong())
            Kind.FLOAT -> Expression.Literal(token.text.toDouble())
            Kind.NAME -> CONSTANTS[token.text]?.let { Expression.Literal(it.value) } ?: Expression.Name(token.text)
            Kind.OPERATOR ->
                when (token.text) {
                    "(" -> parenthesized()
                    "[" -> Expression.ListOf(items("]"))
                    "{" -> dict()
                    else -> throw TemplateException("unexpected '${token.text}'")
                }
        }
    }

    private fun parenthesized(): Expression {
        if (take(")")) return Expression.ListOf(emptyList())
        return tuple().also { expect(")") }
    }

    private fun items(close: String): List<Expression> {
        val items = ArrayList<Expression>()
        while (!take(close)) {
            items += expression()
            if (!isNext(close)) expect(",")
        }
        return items
    }

    private fun dict(): Expression {
        val entries = ArrayList<Pair<Expression, Expression>>()
        while (!take("}")) {
            val key = expression()
            expect(":")
            entries += key to expression()
            if (!isNext("}")) expect(",")
        }
        return Expression.DictOf(entries)
    }

    private fun postfix(start: Expression): Expression {
        var value = start
        while (true) {
            value =
                when {
                    take(".") -> attribute(value)
                    take("[") -> subscript(value)
                    take("(") -> Expression.Call(value, arguments())
                    else -> return value
                }
        }
    }

    private fun attribute(target: Expression): Expression {
        val token = tokens.getOrNull(at)
        if (token?.kind != Kind.INTEGER) return Expression.Attribute(target, name())
        at += 1
        return Expression.Item(target, Expression.Literal(token.text.toLong()))
    }

    private fun subscript(target: Expression): Expression {
        val parts = arrayOfNulls<Expression>(3)
        var colons = 0
        while (!take("]")) {
            if (take(":")) {
                colons += 1
            } else {
                parts[colons] = expression()
            }
            if (colons > 2) throw TemplateException("a slice with too many parts")
        }
        if (colons > 0) return Expression.Slice(target, parts[0], parts[1], parts[2])
        return Expression.Item(target, parts[0] ?: throw TemplateException("an index is missing"))
    }

    /** After the opening parenthesis, to behind the closing one. */
    private fun arguments(): CallArguments {
        val positional = ArrayList<Expression>()
        val named = LinkedHashMap<String, Expression>()
        while (!take(")")) {
            if (tokens.getOrNull(at)?.kind == Kind.NAME && isNext("=", 1)) {
                val name = name()
                expect("=")
                named[name] = expression()
            } else {
                positional += expression()
            }
            if (!isNext(")")) expect(",")
        }
        return CallArguments(positional, named)
    }

    private fun filtered(start: Expression): Expression {
        var value = start
        while (true) {
            value =
                when {
                    take("|") -> {
                        val (name, arguments) = filter()
                        Expression.Filter(value, name, arguments)
                    }
                    take("is") -> test(value)
                    take("(") -> Expression.Call(value, arguments())
                    else -> return value
                }
        }
    }

    /** A filter's name and arguments, after its `|`. */
    fun filter(): Pair<String, CallArguments> =
        name() to if (take("(")) arguments() else CallArguments()

    private fun test(input: Expression): Expression {
        val negated = take("not")
        val name = name()
        val next = tokens.getOrNull(at)
        val arguments =
            when {
                take("(") -> arguments()
                next != null && startsArgument(next) -> CallArguments(listOf(postfix(primary())))
                else -> CallArguments()
            }
        return Expression.Test(input, name, arguments, negated)
    }

    private fun startsArgument(token: Token): Boolean =
        when (token.kind) {
            Kind.NAME -> token.text !in NOT_ARGUMENTS
            Kind.OPERATOR -> token.text == "[" || token.text == "{"
            else -> true
        }

    private class Constant(
        val value: Any?,
    )

    private companion object {
        val COMPARISONS = listOf("==", "!=", "<=", ">=", "<", ">", "in")
        val NOT_ARGUMENTS = setOf("else", "or", "and", "is", "if", "in", "not")
        val CONSTANTS =
            listOf("true" to true, "false" to false, "none" to null)
                .flatMap { (name, value) ->
                    val constant = Constant(value)
                    listOf(name to constant, name.replaceFirstChar(Char::uppercaseChar) to constant)
                }.toMap()
    }
}
