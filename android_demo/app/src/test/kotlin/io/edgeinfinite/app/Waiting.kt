package io.edgeinfinite.app

import android.os.Looper
import org.robolectric.Shadows.shadowOf

/**
 * Runs the main thread's queue until something holds.
 *
 * @throws AssertionError it did not within [seconds].
 */
internal fun waitUntil(
    seconds: Int = 60,
    what: String = "what was waited for",
    holds: () -> Boolean,
) {
    val end = System.nanoTime() + seconds * 1_000_000_000L
    while (true) {
        shadowOf(Looper.getMainLooper()).idle()
        if (holds()) return
        if (System.nanoTime() > end) throw AssertionError("$what didn't happen within $seconds s")
        Thread.sleep(2)
    }
}
