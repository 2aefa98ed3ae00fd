package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element

/** An element's name without its prefix; prefixes are each program's own. */
internal val Element.local: String get() = tag().localName()

internal fun Element.childrenNamed(name: String): List<Element> = children().filter { it.local == name }

internal fun Element.child(name: String): Element? = children().firstOrNull { it.local == name }

/** This element and all in it that have a name. */
internal fun Element.allNamed(name: String): List<Element> = allElements.filter { it.local == name }

/** An attribute in whichever of Word's namespaces; null if there is none. */
internal fun Element.value(name: String = "val"): String? = attributes().firstOrNull { it.localName() == name }?.value

/** Whether a property is there and isn't turned off. */
internal fun Element?.isOn(name: String): Boolean {
    val property = this?.child(name) ?: return false
    return property.value() !in OFF
}

private val OFF = setOf("0", "false", "off")

/** At most nine digits, else [default]. */
internal fun wholeOf(
    value: String?,
    default: Int,
): Int = value.orEmpty().take(WHOLE_DIGITS).takeIf { digits -> digits.all { it in '0'..'9' } }?.toIntOrNull() ?: default

private const val WHOLE_DIGITS = 9
