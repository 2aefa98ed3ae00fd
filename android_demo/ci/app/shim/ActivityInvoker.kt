package androidx.test.internal.platform.app

import android.app.Activity
import android.app.Instrumentation.ActivityResult
import android.content.Intent
import android.os.Bundle

interface ActivityInvoker {
    fun startActivity(intent: Intent, options: Bundle?)

    fun startActivity(intent: Intent)

    fun startActivityForResult(intent: Intent, options: Bundle?)

    fun startActivityForResult(intent: Intent)

    fun getActivityResult(): ActivityResult

    fun resumeActivity(activity: Activity)

    fun pauseActivity(activity: Activity)

    fun stopActivity(activity: Activity)

    fun recreateActivity(activity: Activity)

    fun finishActivity(activity: Activity)

    fun getIntentForActivity(type: Class<out Activity>): Intent
}
