package io.edgeinfinite.core.jinja

/**
 * A parsed template.
 *
 * jinja2's language as chat templates use it: no loading of other templates, no access to anything
 * but the values given, and a limit on the work, because a template is untrusted code.
 *
 * @param source its text.
 * @throws TemplateException it can't be parsed.
 */
internal class Template(
    source: String,
) {
    private val statements = guarded { TemplateParser(source).parse() }

    /**
     * @param values the names that it may use.
     * @param nanoseconds that it may take.
     * @throws TemplateException it refuses the values, or works without end.
     */
    fun render(
        values: Map<String, Any?>,
        nanoseconds: Long = mostNanoseconds,
    ): String = guarded { Renderer(nanoseconds).render(statements, Scope(null, HashMap(values))) }

    /** Whatever a template can bring this code to is the template's fault. */
    private fun <T> guarded(work: () -> T): T =
        try {
            work()
        } catch (_: StackOverflowError) {
            throw TemplateException("it calls itself without end, or is nested too deeply")
        } catch (_: OutOfMemoryError) {
            throw TemplateException("there is no memory for what it writes")
        } catch (error: RuntimeException) { // a value of the wrong kind, a number out of range
            throw TemplateException("it can't be followed (${error.message.orEmpty().lineSequence().first()})")
        }
}

/** The longest time of one rendering; tests wait shorter. */
@Volatile
internal var mostNanoseconds = 10_000_000_000L

/** Names and their values; a loop's body has its own. */
internal class Scope(
    private val outer: Scope?,
    val values: MutableMap<String, Any?> = HashMap(),
) {
    fun find(name: String): Any? =
        when {
            name in values -> values[name]
            outer != null -> outer.find(name)
            else -> Globals[name] ?: Undefined(name)
        }
}

private class Renderer(
    nanoseconds: Long,
) {
    private var steps = 0
    private val end = System.nanoTime() + nanoseconds
    private val evaluator = Evaluator(::step)

    private enum class Flow { GO_ON, BREAK, CONTINUE }

    fun render(
        statements: List<Statement>,
        scope: Scope,
    ): String {
        val out = StringBuilder()
        run(statements, scope, out)
        return out.toString()
    }

    private fun step() {
        steps += 1
        val isOver = steps > MOST_STEPS || System.nanoTime() > end
        if (isOver) throw TemplateException("it works without end")
    }

    private fun run(
        statements: List<Statement>,
        scope: Scope,
        out: StringBuilder,
    ): Flow {
        for (statement in statements) {
            step()
            val flow =
                when (statement) {
                    is Statement.Text -> Flow.GO_ON.also { out.append(statement.text) }
                    is Statement.Output ->
                        Flow.GO_ON.also {
                            out.append(textOf(evaluator.evaluate(statement.expression, scope)))
                        }
                    is Statement.If -> branch(statement, scope, out)
                    is Statement.For -> Flow.GO_ON.also { loop(statement, scope, out) }
                    is Statement.Assign -> Flow.GO_ON.also { assign(statement, scope) }
                    is Statement.AssignBlock -> Flow.GO_ON.also { assignBlock(statement, scope) }
                    is Statement.Macro ->
                        Flow.GO_ON.also { scope.values[statement.name] = macro(statement, scope) }
                    Statement.Break -> Flow.BREAK
                    Statement.Continue -> Flow.CONTINUE
                }
            if (flow != Flow.GO_ON) return flow
            if (out.length > MOST_CHARACTERS) throw TemplateException("it writes without end")
        }
        return Flow.GO_ON
    }

    private fun branch(
        statement: Statement.If,
        scope: Scope,
        out: StringBuilder,
    ): Flow {
        val taken = statement.branches.find { isTrue(evaluator.evaluate(it.first, scope)) }
        return run(taken?.second ?: statement.otherwise, scope, out)
    }

    private fun loop(
        statement: Statement.For,
        scope: Scope,
        out: StringBuilder,
    ) {
        val all = itemsOf(evaluator.evaluate(statement.iterable, scope))
        val items =
            if (statement.condition == null) {
                all
            } else {
                all.filter { item ->
                    val inner = Scope(scope)
                    bind(statement.targets, item, inner)
                    isTrue(evaluator.evaluate(statement.condition, inner))
                }
            }
        if (items.isEmpty()) {
            run(statement.otherwise, Scope(scope), out)
            return
        }
        for (index in items.indices) {
            step()
            val inner = Scope(scope)
            inner.values["loop"] = loopFields(items, index)
            bind(statement.targets, items[index], inner)
            if (run(statement.body, inner, out) == Flow.BREAK) return
        }
    }

    private fun loopFields(
        items: List<Any?>,
        index: Int,
    ): Map<String, Any?> =
        mapOf(
            "index" to index + 1L,
            "index0" to index.toLong(),
            "revindex" to (items.size - index).toLong(),
            "revindex0" to (items.size - index - 1).toLong(),
            "first" to (index == 0),
            "last" to (index == items.lastIndex),
            "length" to items.size.toLong(),
            "previtem" to if (index > 0) items[index - 1] else Undefined("previtem"),
            "nextitem" to if (index < items.lastIndex) items[index + 1] else Undefined("nextitem"),
            "cycle" to Callable { it.positional[index % it.positional.size] },
        )

    private fun bind(
        targets: List<String>,
        item: Any?,
        scope: Scope,
    ) {
        if (targets.size == 1) {
            scope.values[targets[0]] = item
            return
        }
        val parts = itemsOf(item)
        if (parts.size != targets.size) throw TemplateException("${parts.size} values for ${targets.size} names")
        targets.forEachIndexed { index, target -> scope.values[target] = parts[index] }
    }

    private fun assign(
        statement: Statement.Assign,
        scope: Scope,
    ) {
        val value = evaluator.evaluate(statement.value, scope)
        if (statement.targets.size == 1) return store(statement.targets[0], value, scope)
        val parts = itemsOf(value)
        if (parts.size != statement.targets.size) throw TemplateException("not as many values as names")
        statement.targets.forEachIndexed { index, target -> store(target, parts[index], scope) }
    }

    private fun assignBlock(
        statement: Statement.AssignBlock,
        scope: Scope,
    ) {
        val text: Any? = render(statement.body, Scope(scope))
        val value =
            statement.filters.fold(text) { changed, (name, arguments) ->
                Filters.apply(name, changed, evaluator.arguments(arguments, scope))
            }
        store(statement.target, value, scope)
    }

    private fun store(
        target: Expression,
        value: Any?,
        scope: Scope,
    ) {
        when (target) {
            is Expression.Name -> scope.values[target.name] = value
            is Expression.Attribute -> {
                val space = evaluator.evaluate(target.target, scope)
                if (space !is Namespace) throw TemplateException("only a namespace's fields can be set")
                space.fields[target.name] = value
            }
            else -> throw TemplateException("this can't be set")
        }
    }

    private fun macro(
        macro: Statement.Macro,
        scope: Scope,
    ) = Callable { arguments ->
        step()
        val inner = Scope(scope)
        macro.parameters.forEachIndexed { index, (name, default) ->
            inner.values[name] =
                when {
                    index < arguments.positional.size -> arguments.positional[index]
                    name in arguments.named -> arguments.named[name]
                    default != null -> evaluator.evaluate(default, inner)
                    else -> Undefined(name)
                }
        }
        render(macro.body, inner)
    }

    private companion object {
        const val MOST_STEPS = 1_000_000
    }
}
