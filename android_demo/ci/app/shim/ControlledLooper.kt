package androidx.test.internal.platform.os

import android.view.View

interface ControlledLooper {
    fun drainMainThreadUntilIdle()

    fun simulateWindowFocus(view: View)
}
