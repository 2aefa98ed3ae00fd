package androidx.test.espresso

import android.os.Looper

/*
 * What Robolectric touches of androidx.test, which Maven Central doesn't serve: enough for Activities
 * and views, nothing of Espresso or of ActivityScenario. The tests themselves use none of it.
 */

/** Work that a test waits for; there is never one here. */
interface IdlingResource {
    fun getName(): String

    fun isIdleNow(): Boolean

    fun registerIdleTransitionCallback(callback: ResourceCallback?)

    interface ResourceCallback {
        fun onTransitionToIdle()
    }
}

/** Always empty. */
class IdlingRegistry private constructor() {
    val resources: Collection<IdlingResource> = emptyList()
    val loopers: Collection<Looper> = emptyList()

    companion object {
        private val only = IdlingRegistry()

        @JvmStatic
        fun getInstance(): IdlingRegistry = only
    }
}
