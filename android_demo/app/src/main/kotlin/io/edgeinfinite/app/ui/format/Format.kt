package io.edgeinfinite.app.ui.format

import java.util.Locale

/** Numbers for people, as their language writes them; the same in every place of the app. */
object Format {
    /** `12,345`. */
    fun count(value: Long): String = String.format(Locale.getDefault(), "%,d", value)

    /** `950 KB`, `4.6 MB`, `117 MB`, `1.2 GB`; a megabyte is a million bytes, as in Settings. */
    fun bytes(value: Long): String {
        if (value < KILO) return "$value B"
        var scaled = value.toDouble()
        var unit = -1
        while (scaled >= ROUNDS_UP && unit < UNITS.lastIndex) {
            scaled /= KILO
            unit += 1
        }
        return "${number(scaled)} ${UNITS[unit]}"
    }

    /** Tokens per second, without the unit. */
    fun rate(value: Double): String = number(value)

    /** `85 ms`, `1.2 s`, `75 s`. */
    fun seconds(value: Double): String =
        if (value < 1) String.format(Locale.getDefault(), "%.0f ms", value * KILO) else "${number(value)} s"

    /** Three digits or a few more: `0.5`, `8.1`, `96`, `1,204`. */
    private fun number(value: Double): String =
        String.format(Locale.getDefault(), if (value < TEN) "%.1f" else "%,.0f", value)

    private const val KILO = 1000

    /** From here on a value shows as 1.0 of the next unit. */
    private const val ROUNDS_UP = 999.5
    private const val TEN = 9.95
    private val UNITS = listOf("KB", "MB", "GB", "TB")
}
