package io.edgeinfinite.app

import android.app.Application
import android.content.ComponentCallbacks2
import android.content.Context

/** Holds what the screens share and passes on the system's word that memory is short. */
class EdgeInfiniteApplication : Application() {
    /** Made at the first use, so that a process started for nothing stays small. */
    val services: AppServices by lazy { AppServices(this) }

    override fun onTrimMemory(level: Int) {
        super.onTrimMemory(level)
        // Android 14 and newer send only UI_HIDDEN and BACKGROUND; older ones the two others as well.
        @Suppress("DEPRECATION")
        val isShort =
            level >= ComponentCallbacks2.TRIM_MEMORY_BACKGROUND ||
                level == ComponentCallbacks2.TRIM_MEMORY_RUNNING_CRITICAL
        if (isShort) {
            services.onLowMemory()
        } else if (level ==
            ComponentCallbacks2.TRIM_MEMORY_UI_HIDDEN
        ) {
            services.onHidden()
        }
    }
}

/** The application's [AppServices]. */
val Context.services: AppServices get() = (applicationContext as EdgeInfiniteApplication).services
