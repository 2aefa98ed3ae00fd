package androidx.test.platform.ui

import android.view.KeyEvent
import android.view.MotionEvent

class InjectEventSecurityException : Exception()

interface UiController {
    fun injectMotionEvent(event: MotionEvent): Boolean

    fun injectKeyEvent(event: KeyEvent): Boolean

    fun injectString(text: String): Boolean

    fun loopMainThreadUntilIdle()

    fun loopMainThreadForAtLeast(milliseconds: Long)
}
