package io.edgeinfinite.core.jinja

/** A template can't be parsed or rendered; the message says why. */
internal class TemplateException(
    message: String,
) : Exception(message)

/** What is computed. */
internal sealed interface Expression {
    data class Literal(
        val value: Any?,
    ) : Expression

    data class Name(
        val name: String,
    ) : Expression

    data class ListOf(
        val items: List<Expression>,
    ) : Expression

    data class DictOf(
        val entries: List<Pair<Expression, Expression>>,
    ) : Expression

    /** `target.name` */
    data class Attribute(
        val target: Expression,
        val name: String,
    ) : Expression

    /** `target[key]` */
    data class Item(
        val target: Expression,
        val key: Expression,
    ) : Expression

    /** `target[start:stop:step]` */
    data class Slice(
        val target: Expression,
        val start: Expression?,
        val stop: Expression?,
        val step: Expression?,
    ) : Expression

    data class Call(
        val target: Expression,
        val arguments: CallArguments,
    ) : Expression

    data class Filter(
        val input: Expression,
        val name: String,
        val arguments: CallArguments,
    ) : Expression

    data class Test(
        val input: Expression,
        val name: String,
        val arguments: CallArguments,
        val negated: Boolean,
    ) : Expression

    /** `-`, `+`, `not`. */
    data class Unary(
        val operator: String,
        val operand: Expression,
    ) : Expression

    data class Binary(
        val operator: String,
        val left: Expression,
        val right: Expression,
    ) : Expression

    /** `left < b <= c`: operators and what follows each. */
    data class Comparison(
        val left: Expression,
        val rest: List<Pair<String, Expression>>,
    ) : Expression

    data class Conditional(
        val condition: Expression,
        val then: Expression,
        val otherwise: Expression?,
    ) : Expression
}

/** Arguments of a call, a filter or a test as they stand in the template. */
internal data class CallArguments(
    val positional: List<Expression> = emptyList(),
    val named: Map<String, Expression> = emptyMap(),
)

/** What is rendered. */
internal sealed interface Statement {
    data class Text(
        val text: String,
    ) : Statement

    data class Output(
        val expression: Expression,
    ) : Statement

    data class If(
        val branches: List<Pair<Expression, List<Statement>>>,
        val otherwise: List<Statement>,
    ) : Statement

    data class For(
        val targets: List<String>,
        val iterable: Expression,
        val condition: Expression?,
        val body: List<Statement>,
        val otherwise: List<Statement>,
    ) : Statement

    /** `set a = ...`, `set a, b = ...`, `set space.a = ...`. */
    data class Assign(
        val targets: List<Expression>,
        val value: Expression,
    ) : Statement

    /** `set a` ... `endset`. */
    data class AssignBlock(
        val target: Expression,
        val filters: List<Pair<String, CallArguments>>,
        val body: List<Statement>,
    ) : Statement

    data class Macro(
        val name: String,
        val parameters: List<Pair<String, Expression?>>,
        val body: List<Statement>,
    ) : Statement

    data object Break : Statement

    data object Continue : Statement
}
