package io.edgeinfinite.core.jinja

/** Filters and tests of jinja2 that chat templates use. */
internal object Filters {
    /**
     * @throws TemplateException there is no such filter here, or the value doesn't fit it.
     */
    fun apply(
        name: String,
        value: Any?,
        arguments: Arguments,
    ): Any? =
        when (name) {
            "default", "d" -> default(value, arguments)
            "tojson" -> jsonOf(value, jsonStyle(arguments))
            "length", "count" -> lengthOf(value)
            "string" -> textOf(value)
            "safe" -> value
            "list" -> itemsOf(value)
            "first" -> itemsOf(value).firstOrNull() ?: Undefined("first")
            "last" -> itemsOf(value).lastOrNull() ?: Undefined("last")
            "reverse" -> if (value is String) value.reversed() else itemsOf(value).reversed()
            "unique" -> itemsOf(value).distinct()
            "join" -> join(value, arguments)
            "items" -> if (value is Undefined) emptyList<Any?>() else Methods.items(dictOf(value))
            "dictsort" -> Methods.items(dictOf(value)).sortedBy { textOf(it[0]).lowercase() }
            "int" -> integer(value, arguments)
            "float" -> textOf(value).trim().toDoubleOrNull() ?: 0.0
            "abs" -> if (value is Long) Math.abs(value) else Math.abs(numberOf(value))
            "trim", "upper", "lower", "capitalize", "title", "replace" ->
                text(name, textOf(value), arguments)
            "indent" -> indent(textOf(value), arguments)
            "map" -> map(value, arguments)
            "select" -> itemsOf(value).filter { passes(it, arguments) }
            "reject" -> itemsOf(value).filterNot { passes(it, arguments) }
            "selectattr" -> itemsOf(value).filter { passesAttribute(it, arguments) }
            "rejectattr" -> itemsOf(value).filterNot { passesAttribute(it, arguments) }
            else -> throw TemplateException("there is no filter '$name'")
        }

    /** An indentation may use up the limit on characters this many times. */
    private const val MOST_INDENT = 1_000_000

    private fun jsonStyle(arguments: Arguments): JsonStyle {
        val indent = (arguments.get(1, "indent") as Long?)?.let { countOf(it, MOST_INDENT) }
        val plain = JsonStyle(indent)
        val (item, key) = (arguments.get(2, "separators") as List<*>?)?.map(::textOf) ?: listOf(plain.item, plain.key)
        return JsonStyle(
            indent,
            item,
            key,
            isTrue(arguments.get(0, "ensure_ascii", false)),
            isTrue(arguments.get(3, "sort_keys", false)),
        )
    }

    private fun dictOf(value: Any?): Map<*, *> =
        value as? Map<*, *> ?: throw TemplateException("${typeOf(value)} is no dict")

    private fun default(
        value: Any?,
        arguments: Arguments,
    ): Any? {
        val replaces = value is Undefined || (isTrue(arguments.get(1, "boolean", false)) && !isTrue(value))
        return if (replaces) arguments.get(0, "default_value", "") else value
    }

    private fun lengthOf(value: Any?): Long =
        when (value) {
            is String -> value.codePointCount(0, value.length).toLong()
            is Map<*, *> -> value.size.toLong()
            else -> itemsOf(value).size.toLong()
        }

    private fun join(
        value: Any?,
        arguments: Arguments,
    ): String {
        val attribute = arguments.get(1, "attribute") as String?
        val items = itemsOf(value).map { if (attribute == null) it else Methods.item(it, attribute) }
        return joined(items, textOf(arguments.get(0, "d", "")))
    }

    private fun integer(
        value: Any?,
        arguments: Arguments,
    ): Any? =
        when (value) {
            is Long -> value
            is Double -> value.toLong()
            is Boolean -> integerOf(value)
            is String -> value.trim().toLongOrNull() ?: value.trim().toDoubleOrNull()?.toLong()
            else -> null
        } ?: arguments.get(0, "default", 0L)

    private fun text(
        name: String,
        text: String,
        arguments: Arguments,
    ): Any? =
        when (name) {
            "trim" -> Methods.ofString(text, "strip", arguments)
            "capitalize" -> Methods.ofString(text, "capitalize", Arguments(emptyList()))
            else -> Methods.ofString(text, name, arguments)
        }

    private fun indent(
        text: String,
        arguments: Arguments,
    ): String {
        val width = arguments.get(0, "width", 4L)
        val prefix = width as? String ?: " ".repeat(countOf(width, text.count { it == '\n' } + 1))
        val first = isTrue(arguments.get(1, "first", false))
        val blank = isTrue(arguments.get(2, "blank", false))
        return text.split("\n").mapIndexed { index, line ->
            if ((index == 0 && !first) || (line.isEmpty() && !blank && index > 0)) line else prefix + line
        }.joinToString("\n")
    }

    private fun map(
        value: Any?,
        arguments: Arguments,
    ): List<Any?> {
        val attribute = arguments.named["attribute"]
        return itemsOf(value).map { item ->
            if (attribute != null) {
                val found = Methods.item(item, attribute)
                if (found is Undefined && "default" in arguments.named) arguments.named["default"] else found
            } else {
                apply(textOf(arguments.get(0, "filter")), item, arguments.drop(1))
            }
        }
    }

    private fun passes(
        item: Any?,
        arguments: Arguments,
    ): Boolean {
        val name = arguments.positional.firstOrNull() ?: return isTrue(item)
        return test(textOf(name), item, arguments.drop(1))
    }

    private fun passesAttribute(
        item: Any?,
        arguments: Arguments,
    ): Boolean =
        textOf(arguments.positional.first()).split('.').fold(item) { at, part -> Methods.item(at, part) }
            .let { passes(it, arguments.drop(1)) }

    /**
     * @throws TemplateException there is no such test here.
     */
    fun test(
        name: String,
        value: Any?,
        arguments: Arguments,
    ): Boolean {
        val other = arguments.positional.firstOrNull()
        return when (name) {
            "defined" -> value !is Undefined
            "undefined" -> value is Undefined
            "none" -> value == null
            "string" -> value is String
            "number" -> isNumber(value)
            "integer" -> value is Long
            "float" -> value is Double
            "boolean" -> value is Boolean
            "true" -> value == true
            "false" -> value == false
            "mapping" -> value is Map<*, *>
            "sequence" -> value is List<*> || value is String || value is Map<*, *>
            "iterable" -> value is List<*> || value is String || value is Map<*, *> || value is Undefined
            "callable" -> value is Callable
            "equalto", "eq" -> areEqual(value, other)
            "ne" -> !areEqual(value, other)
            "gt", "greaterthan" -> compare(value, other) > 0
            "ge" -> compare(value, other) >= 0
            "lt", "lessthan" -> compare(value, other) < 0
            "le" -> compare(value, other) <= 0
            "in" -> contains(other, value)
            "odd" -> Math.floorMod(integerOf(value), 2L) == 1L
            "even" -> Math.floorMod(integerOf(value), 2L) == 0L
            "divisibleby" -> Math.floorMod(integerOf(value), integerOf(other)) == 0L
            else -> throw TemplateException("there is no test '$name'")
        }
    }
}
