package io.edgeinfinite.app.documents

import org.jsoup.nodes.Element
import kotlin.math.abs

/**
 * What properties say of a run that a reader of text needs; null where they say nothing. As Python's `word_styles.py`.
 *
 * @property isHidden whether Word shows it to nobody.
 * @property align where it stands to its line.
 * @property position by how many half points it is moved up.
 * @property font of its signs.
 */
internal data class RunProperties(
    val isHidden: Boolean? = null,
    val align: String? = null,
    val position: String? = null,
    val font: String? = null,
) {
    /** The element that it becomes if it stands higher or lower than its line. */
    val raised: String?
        get() {
            if (align != null) return RAISED[align]
            val points = position?.takeIf(WHOLE::matches)?.toInt() ?: 0
            return if (abs(points) < FAR) {
                null
            } else if (points < 0) {
                "sub"
            } else {
                "sup"
            }
        }

    /** These, and of [other] what these don't say. */
    fun orElse(other: RunProperties) =
        RunProperties(
            isHidden ?: other.isHidden,
            align ?: other.align,
            position ?: other.position,
            font ?: other.font,
        )

    companion object {
        val NONE = RunProperties()

        /** Half points by which a run stands higher or lower; less sets a line straight. */
        private const val FAR = 6
        private val WHOLE = Regex("-?\\d{1,6}")
        private val RAISED = mapOf("subscript" to "sub", "superscript" to "sup")

        fun of(properties: Element?): RunProperties {
            val fonts = properties?.child("rFonts")
            val isHidden = properties?.child("vanish")?.let { properties.isOn("vanish") }
            return RunProperties(
                isHidden,
                properties?.child("vertAlign")?.value(),
                properties?.child("position")?.value(),
                fonts?.value("ascii") ?: fonts?.value("hAnsi"),
            )
        }
    }
}
