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
        if (holds()) return
        // One task at a time, so that a state that passes quickly is seen too.
        val looper = shadowOf(Looper.getMainLooper())
        if (!looper.isIdle) {
            looper.runOneTask()
            continue
        }
        if (System.nanoTime() > end) throw AssertionError("$what didn't happen within $seconds s")
        Thread.sleep(2)
    }
}
