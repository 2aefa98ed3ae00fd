package io.edgeinfinite.core.tools

import io.edgeinfinite.core.jinja.isNumber

/**
 * A tool's arguments one by one, and what kinds of values they take; as Python's `tools/arguments.py`.
 *
 * @param root the schema of all arguments, an object.
 */
internal class Arguments(
    private val root: Map<*, *>,
) {
    /** Each argument's schema, by its name. */
    val all: Map<String, Any?> by lazy {
        val found = LinkedHashMap<String, Any?>()
        for (part in objects(root, 0)) {
            for ((name, schema) in part["properties"] as? Map<*, *> ?: continue) {
                if (name is String) found.putIfAbsent(name, schema as? Map<*, *> ?: emptyMap<Any?, Any?>())
            }
        }
        found
    }

    /** The kinds of JSON values that an argument takes, such as `string`; empty where nothing says it. */
    fun kinds(name: String): Set<String> = kinds(all[name], 0)

    private fun kinds(
        schema: Any?,
        depth: Int,
    ): Set<String> {
        if (schema !is Map<*, *> || depth > DEEPEST) return emptySet()
        val type = schema["type"]
        val target = target(schema["\$ref"])
        val choices = CHOICES.firstNotNullOfOrNull { schema[it] as? List<*> }
        return when {
            type is String -> setOf(type)
            type is List<*> -> type.filterIsInstance<String>().toSet()
            schema["enum"] is List<*> -> (schema["enum"] as List<*>).map(::kindOf).toSet()
            schema.containsKey("const") -> setOf(kindOf(schema["const"]))
            target != null -> kinds(target, depth + 1)
            choices != null -> {
                val each = choices.map { kinds(it, depth + 1) }
                if (each.all { it.isNotEmpty() }) each.flatten().toSet() else emptySet()
            }
            else -> {
                val others = (schema["allOf"] as? List<*>).orEmpty()
                others.firstNotNullOfOrNull { one -> kinds(one, depth + 1).takeIf { it.isNotEmpty() } }
                    ?: OF_KEYWORDS.filterKeys(schema::containsKey).values.toSet()
            }
        }
    }

    private fun kindOf(value: Any?): String =
        when {
            value == null -> "null"
            value is String -> "string"
            value is Boolean -> "boolean"
            value is List<*> -> "array"
            value is Map<*, *> -> "object"
            value is Double || value is Float -> "number"
            isNumber(value) -> "integer"
            else -> ""
        }

    /** The schema and those that hold for the same value, too. */
    private fun objects(
        schema: Map<*, *>,
        depth: Int,
    ): List<Map<*, *>> {
        if (depth > DEEPEST) return emptyList()
        val others = listOf(target(schema["\$ref"])) + (schema["allOf"] as? List<*>).orEmpty()
        return listOf(schema) + others.filterIsInstance<Map<*, *>>().flatMap { objects(it, depth + 1) }
    }

    /** What a reference leads to; null if it isn't one. */
    private fun target(reference: Any?): Any? {
        if (reference !is String) return null
        val base = root["\$id"] as? String
        val isOwn = !base.isNullOrEmpty() && reference.startsWith(base.trimEnd('#'))
        if (!isOwn && !reference.startsWith("#")) return null
        var found: Any? = root
        for (name in reference.substringAfter('#', "").split('/').drop(1)) {
            val key = name.replace("~1", "/").replace("~0", "~")
            found =
                when (val at = found) {
                    is Map<*, *> -> at[key]
                    is List<*> -> key.toIntOrNull()?.let(at::getOrNull)
                    else -> null
                }
        }
        return found
    }

    private companion object {
        const val DEEPEST = 30
        val CHOICES = listOf("anyOf", "oneOf")

        /** Keywords that say nothing of other kinds of values. */
        val OF_KEYWORDS =
            listOf("properties", "required", "additionalProperties", "minProperties").associateWith { "object" } +
                listOf("items", "prefixItems", "minItems", "maxItems", "uniqueItems").associateWith { "array" } +
                listOf("pattern", "format", "minLength", "maxLength").associateWith { "string" } +
                listOf("minimum", "maximum", "multipleOf").associateWith { "number" }
    }
}
