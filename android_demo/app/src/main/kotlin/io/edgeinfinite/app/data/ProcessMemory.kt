package io.edgeinfinite.app.data

import java.io.File
import java.io.IOException

/** The memory that this process uses. */
object ProcessMemory {
    /**
     * Proportional set size in bytes, null where the kernel doesn't tell. Takes milliseconds: not
     * for the main thread.
     */
    fun pss(): Long? =
        try {
            File("/proc/self/smaps_rollup").useLines { lines ->
                val line = lines.firstOrNull { it.startsWith("Pss:") }
                line?.filter { it.isDigit() }?.toLongOrNull()?.times(KILOBYTE)
            }
        } catch (_: IOException) {
            null
        } ?: fromSystem()

    /** Kernels before 4.14 have no rollup; the system then adds up the whole map. */
    private fun fromSystem(): Long? = (android.os.Debug.getPss() * KILOBYTE).takeIf { it > 0 }

    private const val KILOBYTE = 1024L
}
