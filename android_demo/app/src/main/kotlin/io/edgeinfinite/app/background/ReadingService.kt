package io.edgeinfinite.app.background

import android.app.Notification
import android.app.NotificationChannel
import android.app.NotificationManager
import android.app.PendingIntent
import android.app.Service
import android.content.Context
import android.content.Intent
import android.content.pm.ServiceInfo
import android.graphics.drawable.Icon
import android.os.Build
import android.os.IBinder
import io.edgeinfinite.app.R
import io.edgeinfinite.app.services
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.screens.chatIntent
import io.edgeinfinite.app.ui.viewmodel.Phase
import io.edgeinfinite.app.ui.viewmodel.RunningChat
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.cancel
import kotlinx.coroutines.launch

/**
 * Tells the system, and by a notification the person, that a text is read while no screen shows it, so
 * that the process isn't frozen. It computes nothing itself, and ends with the reading.
 */
class ReadingService : Service() {
    private val scope: CoroutineScope = MainScope()
    private var following: Job? = null
    private var lastStart = 0

    override fun onBind(intent: Intent?): IBinder? = null

    override fun onStartCommand(
        intent: Intent?,
        flags: Int,
        startId: Int,
    ): Int {
        // The system wants a notification within seconds of every start.
        show(notification(null))
        if (intent?.action == STOP) services.stopRunning()
        lastStart = startId
        if (following?.isActive != true) following = scope.launch { follow() }
        // A killed process has nothing that reads; its chat reads on when it is opened.
        return START_NOT_STICKY
    }

    private suspend fun follow() {
        var shownAt: Long? = null
        services.running.collect { running ->
            val now = System.nanoTime()
            if (running?.phase !is Phase.Reading) {
                end()
            } else if (shownAt?.let { now - it < PAUSE_NS } != true) {
                show(notification(running))
                shownAt = now
            }
        }
    }

    /** A day's allowance of such services is used up (API 35): the system may freeze the reading now. */
    override fun onTimeout(
        startId: Int,
        fgsType: Int,
    ) = end()

    private fun end() {
        following?.cancel()
        stopForeground(STOP_FOREGROUND_REMOVE)
        stopSelf(lastStart) // not if it was started again in the same moment
    }

    override fun onDestroy() {
        scope.cancel()
        super.onDestroy()
    }

    private fun show(notification: Notification) {
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.Q) {
            startForeground(NOTIFICATION, notification, ServiceInfo.FOREGROUND_SERVICE_TYPE_DATA_SYNC)
        } else {
            startForeground(NOTIFICATION, notification)
        }
    }

    /** @param running null until it is known what is read. */
    private fun notification(running: RunningChat?): Notification {
        val channel =
            NotificationChannel(CHANNEL, getString(R.string.channel_reading), NotificationManager.IMPORTANCE_LOW)
        getSystemService(NotificationManager::class.java).createNotificationChannel(channel)
        val reading = running?.phase as? Phase.Reading
        val builder =
            Notification
                .Builder(this, CHANNEL)
                .setSmallIcon(R.drawable.ic_document)
                .setContentTitle(getString(R.string.reading, reading?.name ?: getString(R.string.reading_prompt)))
                .setOngoing(true)
                .setOnlyAlertOnce(true)
                .addAction(stopAction())
        if (reading == null) return builder.setProgress(0, 0, true).build()
        val progress = (reading.read * STEPS / maxOf(1, reading.total)).toInt()
        return builder
            .setContentText(
                getString(R.string.reading_progress, Format.count(reading.read), Format.count(reading.total)),
            ).setProgress(STEPS, progress, false)
            .setContentIntent(
                PendingIntent.getActivity(this, 0, chatIntent(running.id), FLAGS),
            ).build()
    }

    private fun stopAction(): Notification.Action {
        val intent = Intent(this, ReadingService::class.java).setAction(STOP)
        val stop = PendingIntent.getService(this, 0, intent, FLAGS)
        val icon = Icon.createWithResource(this, R.drawable.ic_stop)
        return Notification.Action.Builder(icon, getString(R.string.stop), stop).build()
    }

    companion object {
        /** Action: ends the reading. */
        internal const val STOP = "io.edgeinfinite.app.STOP_READING"
        private const val CHANNEL = "reading"
        private const val NOTIFICATION = 1
        private const val STEPS = 1_000
        private const val PAUSE_NS = 500_000_000L
        private const val FLAGS = PendingIntent.FLAG_IMMUTABLE or PendingIntent.FLAG_UPDATE_CURRENT

        /** Begins to follow what is read; from a screen that is seen. */
        fun start(context: Context) {
            try {
                context.startForegroundService(Intent(context, ReadingService::class.java))
            } catch (_: IllegalStateException) {
                // The screen was left in the same moment: the reading goes on as long as the system lets it.
            }
        }
    }
}
