package io.edgeinfinite.core.jinja

import kotlin.math.pow

/**
 * Computes expressions.
 *
 * @param step called for every one, to bound the work.
 */
internal class Evaluator(
    private val step: () -> Unit,
) {
    /**
     * @throws TemplateException as the template asks for, or where Python would raise an error.
     */
    fun evaluate(
        expression: Expression,
        scope: Scope,
    ): Any? {
        step()
        return when (expression) {
            is Expression.Literal -> expression.value
            is Expression.Name -> scope.find(expression.name)
            is Expression.ListOf -> limited(expression.items.map { evaluate(it, scope) })
            is Expression.DictOf ->
                limited(
                    expression.entries.associate { (key, value) -> evaluate(key, scope) to evaluate(value, scope) },
                )
            is Expression.Attribute -> Methods.attribute(evaluate(expression.target, scope), expression.name)
            is Expression.Item ->
                Methods.item(evaluate(expression.target, scope), evaluate(expression.key, scope))
            is Expression.Slice -> slice(expression, scope)
            is Expression.Call -> call(expression, scope)
            is Expression.Filter -> {
                val input = evaluate(expression.input, scope)
                Filters.apply(expression.name, input, arguments(expression.arguments, scope))
            }
            is Expression.Test -> {
                val input = evaluate(expression.input, scope)
                val passed = Filters.test(expression.name, input, arguments(expression.arguments, scope))
                passed != expression.negated
            }
            is Expression.Unary -> unary(expression, scope)
            is Expression.Binary -> binary(expression, scope)
            is Expression.Comparison -> comparison(expression, scope)
            is Expression.Conditional ->
                when {
                    isTrue(evaluate(expression.condition, scope)) -> evaluate(expression.then, scope)
                    expression.otherwise != null -> evaluate(expression.otherwise, scope)
                    else -> Undefined("the other case")
                }
        }
    }

    fun arguments(
        given: CallArguments,
        scope: Scope,
    ) = Arguments(
        given.positional.map { evaluate(it, scope) },
        given.named.mapValues { evaluate(it.value, scope) },
    )

    private fun call(
        expression: Expression.Call,
        scope: Scope,
    ): Any? {
        val target = evaluate(expression.target, scope)
        if (target is Undefined) throw TemplateException("'${target.name}' is undefined")
        if (target !is Callable) throw TemplateException("${typeOf(target)} can't be called")
        return target.call(arguments(expression.arguments, scope))
    }

    private fun slice(
        expression: Expression.Slice,
        scope: Scope,
    ): Any? {
        val target = evaluate(expression.target, scope)
        val items = itemsOf(target)
        val step = expression.step?.let { integerOf(evaluate(it, scope)) } ?: 1L
        if (step == 0L) throw TemplateException("a slice of step 0")
        val lowest = if (step > 0) 0L else -1L
        val highest = if (step > 0) items.size.toLong() else items.size - 1L

        fun bound(
            part: Expression?,
            default: Long,
        ): Long {
            val given = part?.let { evaluate(it, scope) } ?: return default
            val place = integerOf(given)
            return (if (place < 0) place + items.size else place).coerceIn(lowest, highest)
        }
        val start = bound(expression.start, if (step > 0) lowest else highest)
        val stop = bound(expression.stop, if (step > 0) highest else lowest)
        val range = if (step > 0) start until stop step step else start downTo stop + 1 step -step
        val kept = range.map { items[it.toInt()] }
        return if (target is String) kept.joinToString("") else kept
    }

    private fun unary(
        expression: Expression.Unary,
        scope: Scope,
    ): Any? {
        val value = evaluate(expression.operand, scope)
        return when {
            expression.operator == "not" -> !isTrue(value)
            value is Double -> if (expression.operator == "-") -value else value
            else -> integerOf(value).let { if (expression.operator == "-") -it else it }
        }
    }

    private fun binary(
        expression: Expression.Binary,
        scope: Scope,
    ): Any? {
        val left = evaluate(expression.left, scope)
        when (expression.operator) {
            "and" -> return if (isTrue(left)) evaluate(expression.right, scope) else left
            "or" -> return if (isTrue(left)) left else evaluate(expression.right, scope)
        }
        val right = evaluate(expression.right, scope)
        return when (expression.operator) {
            "~" -> limited(textOf(left) + textOf(right))
            "+" -> plus(left, right)
            "*" -> times(left, right)
            else -> arithmetic(expression.operator, left, right)
        }
    }

    private fun plus(
        left: Any?,
        right: Any?,
    ): Any? =
        when {
            left is String && right is String -> limited(left + right)
            left is List<*> && right is List<*> -> limited(left + right)
            isNumber(left) && isNumber(right) -> arithmetic("+", left, right)
            else -> throw TemplateException("${typeOf(left)} and ${typeOf(right)} can't be added")
        }

    private fun times(
        left: Any?,
        right: Any?,
    ): Any? {
        val (text, count) = if (left is String) left to right else right to left
        if (text !is String) return arithmetic("*", left, right)
        return text.repeat(countOf(count, text.length))
    }

    private fun arithmetic(
        operator: String,
        left: Any?,
        right: Any?,
    ): Any? {
        val zero = operator in listOf("/", "//", "%") && numberOf(right) == 0.0
        if (zero) throw TemplateException("a division by zero")
        if (left is Double || right is Double || operator == "/") {
            val one = numberOf(left)
            val other = numberOf(right)
            return when (operator) {
                "+" -> one + other
                "-" -> one - other
                "*" -> one * other
                "/" -> one / other
                "//" -> Math.floor(one / other)
                "%" -> one - other * Math.floor(one / other)
                else -> one.pow(other)
            }
        }
        val one = integerOf(left)
        val other = integerOf(right)
        return when (operator) {
            "+" -> one + other
            "-" -> one - other
            "*" -> one * other
            "//" -> Math.floorDiv(one, other)
            "%" -> Math.floorMod(one, other)
            else -> one.toDouble().pow(other.toDouble()).toLong()
        }
    }

    private fun comparison(
        expression: Expression.Comparison,
        scope: Scope,
    ): Boolean {
        var left = evaluate(expression.left, scope)
        for ((operator, following) in expression.rest) {
            val right = evaluate(following, scope)
            if (!holds(operator, left, right)) return false
            left = right
        }
        return true
    }

    private fun holds(
        operator: String,
        left: Any?,
        right: Any?,
    ): Boolean =
        when (operator) {
            "==" -> areEqual(left, right)
            "!=" -> !areEqual(left, right)
            "in" -> contains(right, left)
            "not in" -> !contains(right, left)
            "<" -> compare(left, right) < 0
            "<=" -> compare(left, right) <= 0
            ">" -> compare(left, right) > 0
            else -> compare(left, right) >= 0
        }
}
