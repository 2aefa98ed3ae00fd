package io.edgeinfinite.core.jinja

/** Attributes, items and methods of Python's strings, lists and dicts that chat templates use. */
internal object Methods {
    private val STRING_METHODS =
        setOf(
            "strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "startswith", "endswith",
            "upper", "lower", "title", "capitalize", "replace", "find", "count", "join",
            "removeprefix", "removesuffix", "isdigit", "isupper", "islower",
        )
    private val MAP_METHODS = setOf("items", "keys", "values", "get")
    private val LIST_METHODS = setOf("index", "count")

    /** `target[key]`: the item, else the attribute. */
    fun item(
        target: Any?,
        key: Any?,
    ): Any? {
        val found =
            when {
                target is Map<*, *> && target.containsKey(key) -> target[key]
                target is List<*> && key is Long -> at(target, key)
                target is String && key is Long -> at(itemsOf(target), key)
                key is String -> return attributeOrNull(target, key) ?: undefined(target, key)
                else -> return undefined(target, key)
            }
        return found
    }

    /** `target.name`: the attribute, else the item. */
    fun attribute(
        target: Any?,
        name: String,
    ): Any? {
        attributeOrNull(target, name)?.let { return it }
        if (target is Map<*, *> && target.containsKey(name)) return target[name]
        if (target is Namespace && target.fields.containsKey(name)) return target.fields[name]
        return undefined(target, name)
    }

    /** The entries of a dict, as pairs. */
    fun items(map: Map<*, *>): List<List<Any?>> = map.entries.map { listOf(it.key, it.value) }

    private fun undefined(
        target: Any?,
        key: Any?,
    ): Any? {
        if (target is Undefined) throw TemplateException("'${target.name}' is undefined")
        if (target == null && key !is String) throw TemplateException("None has no items")
        return Undefined(textOf(key))
    }

    private fun at(
        items: List<Any?>,
        index: Long,
    ): Any? {
        val place = if (index < 0) index + items.size else index
        return if (place in items.indices) items[place.toInt()] else Undefined(index.toString())
    }

    private fun attributeOrNull(
        target: Any?,
        name: String,
    ): Any? =
        when {
            target is String && name in STRING_METHODS -> Callable { ofString(target, name, it) }
            target is Map<*, *> && name in MAP_METHODS -> Callable { ofMap(target, name, it) }
            target is List<*> && name in LIST_METHODS -> Callable { ofList(target, name, it) }
            target is Namespace && target.fields[name] != null -> target.fields[name]
            else -> null
        }

    private fun ofMap(
        map: Map<*, *>,
        name: String,
        arguments: Arguments,
    ): Any? =
        when (name) {
            "items" -> items(map)
            "keys" -> map.keys.toList()
            "values" -> map.values.toList()
            else -> {
                val key = arguments.get(0, "key")
                if (map.containsKey(key)) map[key] else arguments.get(1, "default")
            }
        }

    private fun ofList(
        items: List<*>,
        name: String,
        arguments: Arguments,
    ): Any? {
        val value = arguments.get(0, "value")
        if (name == "count") return items.count { areEqual(it, value) }.toLong()
        val place = items.indexOfFirst { areEqual(it, value) }
        return if (place >= 0) place.toLong() else throw TemplateException("it isn't in the list")
    }

    /** A method of a string, also behind the filters of the same names. */
    fun ofString(
        text: String,
        name: String,
        arguments: Arguments,
    ): Any? {
        val first = arguments.positional.firstOrNull() ?: arguments.named.values.firstOrNull()
        return when (name) {
            "strip" -> strip(text, first, left = true, right = true)
            "lstrip" -> strip(text, first, left = true, right = false)
            "rstrip" -> strip(text, first, left = false, right = true)
            "split" -> split(text, first as String?, limitOf(arguments))
            "rsplit" -> rsplit(text, first as String?, limitOf(arguments))
            "splitlines" -> text.removeSuffix("\n").let { if (it.isEmpty()) emptyList() else it.lines() }
            "startswith" -> affixes(first).any { text.startsWith(it) }
            "endswith" -> affixes(first).any { text.endsWith(it) }
            "upper" -> text.uppercase()
            "lower" -> text.lowercase()
            "capitalize" -> text.lowercase().replaceFirstChar { it.titlecase() }
            "title" -> titled(text)
            "replace" -> replace(text, arguments)
            "find" -> text.indexOf(textOf(first)).toLong()
            "count" -> text.windowed(maxOf(textOf(first).length, 1)).count { it == first }.toLong()
            "join" -> joined(itemsOf(first), text)
            "removeprefix" -> text.removePrefix(textOf(first))
            "removesuffix" -> text.removeSuffix(textOf(first))
            "isdigit" -> text.isNotEmpty() && text.all { it.isDigit() }
            "isupper" -> text.any { it.isUpperCase() } && text.none { it.isLowerCase() }
            "islower" -> text.any { it.isLowerCase() } && text.none { it.isUpperCase() }
            else -> throw TemplateException("a string has no method '$name'")
        }
    }

    private fun limitOf(arguments: Arguments): Int =
        integerOf(arguments.get(1, "maxsplit", -1L)).toInt().let { if (it < 0) Int.MAX_VALUE else it }

    private fun affixes(value: Any?): List<String> =
        if (value is String) listOf(value) else itemsOf(value).map { textOf(it) }

    private fun strip(
        text: String,
        characters: Any?,
        left: Boolean,
        right: Boolean,
    ): String {
        val goes: (Char) -> Boolean = if (characters is String) ({ it in characters }) else (::isPythonSpace)
        val start = if (left) text.trimStart(goes) else text
        return if (right) start.trimEnd(goes) else start
    }

    private fun split(
        text: String,
        separator: String?,
        limit: Int,
    ): List<String> {
        if (separator != null) {
            if (separator.isEmpty()) throw TemplateException("an empty separator")
            return text.split(separator, limit = if (limit == Int.MAX_VALUE) 0 else limit + 1)
        }
        val words = ArrayList<String>()
        var rest = text.trimStart(::isPythonSpace)
        while (rest.isNotEmpty()) {
            if (words.size == limit) return words + rest.trimEnd(::isPythonSpace)
            val word = rest.takeWhile { !isPythonSpace(it) }
            words += word
            rest = rest.drop(word.length).trimStart(::isPythonSpace)
        }
        return words
    }

    private fun rsplit(
        text: String,
        separator: String?,
        limit: Int,
    ): List<String> =
        split(text.reversed(), separator?.reversed(), limit).map { it.reversed() }.reversed()

    private fun replace(
        text: String,
        arguments: Arguments,
    ): String {
        val old = textOf(arguments.get(0, "old"))
        val new = textOf(arguments.get(1, "new"))
        val found = if (old.isEmpty()) text.length + 1 else text.split(old).size
        countOf(found.toLong(), new.length)
        val count = arguments.get(2, "count") as Long? ?: return text.replace(old, new)
        return split(text, old, count.toInt()).joinToString(new)
    }

    private fun titled(text: String): String {
        var inWord = false
        return text.map { unit ->
            val cased = if (inWord) unit.lowercase() else unit.titlecase()
            inWord = unit.isLetter()
            cased
        }.joinToString("")
    }
}
