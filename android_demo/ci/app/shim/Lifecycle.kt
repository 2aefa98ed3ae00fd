package androidx.test.runner.lifecycle

import android.app.Activity

enum class Stage { PRE_ON_CREATE, CREATED, STARTED, RESUMED, PAUSED, STOPPED, RESTARTED, DESTROYED }

enum class ApplicationStage { PRE_ON_CREATE, CREATED }

fun interface ActivityLifecycleCallback {
    fun onActivityLifecycleChanged(
        activity: Activity,
        stage: Stage,
    )
}

interface ActivityLifecycleMonitor {
    fun addLifecycleCallback(callback: ActivityLifecycleCallback)

    fun removeLifecycleCallback(callback: ActivityLifecycleCallback)

    fun getLifecycleStageOf(activity: Activity): Stage

    fun getActivitiesInStage(stage: Stage): Collection<Activity>
}

object ActivityLifecycleMonitorRegistry {
    private var registered: ActivityLifecycleMonitor? = null

    @JvmStatic
    fun getInstance(): ActivityLifecycleMonitor = checkNotNull(registered)

    @JvmStatic
    fun registerInstance(monitor: ActivityLifecycleMonitor) {
        registered = monitor
    }
}

interface ApplicationLifecycleMonitor

object ApplicationLifecycleMonitorRegistry {
    @JvmStatic
    fun registerInstance(monitor: ApplicationLifecycleMonitor) = Unit
}
