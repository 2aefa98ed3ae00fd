package io.edgeinfinite.app.data

import android.content.Context
import android.os.BatteryManager
import android.os.Build
import android.os.PowerManager
import java.io.File
import java.io.IOException

/** What a speed depends on, besides the model. */
class DeviceFacts(
    private val context: Context,
) {
    /** Maker and model. */
    val device: String get() = "${Build.MANUFACTURER} ${Build.MODEL}"

    /** The chip's name, as far as the system tells. */
    val soc: String
        get() = if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.S) Build.SOC_MODEL else Build.HARDWARE

    /** The chip's name; null before Android 12, which doesn't tell. */
    fun chip(): String? =
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.S) {
            Build.SOC_MODEL.takeIf { it != Build.UNKNOWN }
        } else {
            null
        }

    /** The app's version. */
    val version: String
        get() = context.packageManager.getPackageInfo(context.packageName, 0).versionName.orEmpty()

    /** 0 (none) to 6 (the device shuts down), as Android's `THERMAL_STATUS_*`; null before Android 10. */
    val thermal: Int?
        get() =
            if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.Q) {
                context.getSystemService(PowerManager::class.java)?.currentThermalStatus
            } else {
                null
            }

    /** In percent; null where there is none. */
    val battery: Int?
        get() = batteryManager?.getIntProperty(BatteryManager.BATTERY_PROPERTY_CAPACITY)?.takeIf { it in 0..FULL }

    /** Whether it is plugged in. */
    val isCharging: Boolean? get() = batteryManager?.isCharging

    private val batteryManager get() = context.getSystemService(BatteryManager::class.java)

    companion object {
        private const val FULL = 100
        private const val KILOBYTE = 1024L

        /** The most memory that this process has used so far, in bytes; null where the kernel doesn't tell. */
        fun peakBytes(): Long? =
            try {
                File("/proc/self/status").useLines { lines ->
                    val line = lines.firstOrNull { it.startsWith("VmHWM:") }
                    line?.filter { it.isDigit() }?.toLongOrNull()?.times(KILOBYTE)
                }
            } catch (_: IOException) {
                null
            }
    }
}
