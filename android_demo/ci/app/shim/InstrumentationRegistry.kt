package androidx.test.platform.app

import android.app.Instrumentation
import android.os.Bundle

object InstrumentationRegistry {
    private var registered: Instrumentation? = null

    @JvmStatic
    fun getInstrumentation(): Instrumentation = checkNotNull(registered)

    @JvmStatic
    fun registerInstance(
        instrumentation: Instrumentation?,
        arguments: Bundle?,
    ) {
        registered = instrumentation
    }
}
