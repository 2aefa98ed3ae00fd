package io.edgeinfinite.core.jinja

import java.util.Calendar
import java.util.Locale

/** What every template can call, as in transformers: see `runtime_py/text/chat_template.py`. */
internal object Globals {
    private const val LONGEST_RANGE = 100_000L
    private val all: Map<String, Any?> =
        mapOf(
            "range" to Callable(::range),
            "dict" to Callable { it.named },
            "namespace" to Callable(::namespace),
            "raise_exception" to Callable { throw TemplateException(textOf(it.get(0, "message"))) },
            "strftime_now" to Callable { strftime(textOf(it.get(0, "pattern")), Calendar.getInstance()) },
        )

    operator fun get(name: String): Any? = all[name]

    private fun range(arguments: Arguments): List<Long> {
        val given = arguments.positional.map(::integerOf)
        val (start, stop) = if (given.size > 1) given[0] to given[1] else 0L to given[0]
        val step = given.getOrElse(2) { 1L }
        if (step == 0L) throw TemplateException("a range of step 0")
        val range = if (step > 0) start until stop step step else start downTo stop + 1 step -step
        return range.asSequence().take(LONGEST_RANGE.toInt() + 1).toList().also {
            if (it.size > LONGEST_RANGE) throw TemplateException("a range of over $LONGEST_RANGE")
        }
    }

    private fun namespace(arguments: Arguments): Namespace {
        val fields = LinkedHashMap<String, Any?>()
        for (given in arguments.positional) {
            (given as? Map<*, *>)?.forEach { (name, value) -> fields[textOf(name)] = value }
        }
        fields += arguments.named
        return Namespace(fields)
    }

    private fun strftime(
        pattern: String,
        now: Calendar,
    ): String {
        val text = StringBuilder()
        var at = 0
        while (at < pattern.length) {
            if (pattern[at] != '%' || at + 1 == pattern.length) {
                text.append(pattern[at++])
                continue
            }
            val unpadded = pattern[at + 1] == '-' && at + 2 < pattern.length
            val letter = pattern[if (unpadded) at + 2 else at + 1]
            val field = field(letter, now)
            text.append(if (unpadded) field.trimStart('0').ifEmpty { "0" } else field)
            at += if (unpadded) 3 else 2
        }
        return text.toString()
    }

    /** One field as Python's C locale writes it. */
    private fun field(
        letter: Char,
        now: Calendar,
    ): String {
        val format =
            when (letter) {
                'Y' -> "%tY"
                'y' -> "%ty"
                'm' -> "%tm"
                'd' -> "%td"
                'B' -> "%tB"
                'b' -> "%tb"
                'A' -> "%tA"
                'a' -> "%ta"
                'H' -> "%tH"
                'I' -> "%tI"
                'M' -> "%tM"
                'S' -> "%tS"
                'j' -> "%tj"
                'p' -> return String.format(Locale.ROOT, "%Tp", now)
                '%' -> return "%"
                else -> throw TemplateException("strftime_now doesn't know %$letter")
            }
        return String.format(Locale.US, format, now)
    }
}
