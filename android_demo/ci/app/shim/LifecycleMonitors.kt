package androidx.test.internal.runner.lifecycle

import android.app.Activity
import android.app.Application
import androidx.test.runner.lifecycle.ActivityLifecycleCallback
import androidx.test.runner.lifecycle.ActivityLifecycleMonitor
import androidx.test.runner.lifecycle.ApplicationLifecycleMonitor
import androidx.test.runner.lifecycle.ApplicationStage
import androidx.test.runner.lifecycle.Stage
import java.util.WeakHashMap

class ActivityLifecycleMonitorImpl : ActivityLifecycleMonitor {
    private val stages = WeakHashMap<Activity, Stage>()

    fun signalLifecycleChange(
        stage: Stage,
        activity: Activity,
    ) {
        stages[activity] = stage
    }

    override fun addLifecycleCallback(callback: ActivityLifecycleCallback) = Unit

    override fun removeLifecycleCallback(callback: ActivityLifecycleCallback) = Unit

    override fun getLifecycleStageOf(activity: Activity): Stage = stages.getValue(activity)

    override fun getActivitiesInStage(stage: Stage): Collection<Activity> = stages.filterValues { it == stage }.keys
}

class ApplicationLifecycleMonitorImpl : ApplicationLifecycleMonitor {
    fun signalLifecycleChange(
        application: Application,
        stage: ApplicationStage,
    ) = Unit
}
