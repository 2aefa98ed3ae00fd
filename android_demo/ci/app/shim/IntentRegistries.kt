package androidx.test.runner.intent

import android.app.Instrumentation.ActivityResult
import android.content.Intent

interface IntentMonitor

object IntentMonitorRegistry {
    @JvmStatic
    fun registerInstance(monitor: IntentMonitor) = Unit
}

interface IntentStubber {
    fun getActivityResultForIntent(intent: Intent): ActivityResult?
}

/** Intents are never answered here: tests do that through Robolectric's shadows. */
object IntentStubberRegistry {
    @JvmStatic
    fun isLoaded(): Boolean = false

    @JvmStatic
    fun getInstance(): IntentStubber = error("there is no stubber")
}
