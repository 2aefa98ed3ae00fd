package io.edgeinfinite.app

import android.Manifest
import android.app.AlertDialog
import android.app.Notification
import android.content.Intent
import android.content.pm.PackageManager
import android.content.pm.ServiceInfo
import android.widget.Switch
import io.edgeinfinite.app.background.ReadingService
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.screens.SettingsActivity
import io.edgeinfinite.app.ui.viewmodel.Phase
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test
import org.robolectric.Robolectric
import org.robolectric.Shadows.shadowOf
import org.robolectric.android.controller.ServiceController
import org.robolectric.shadows.ShadowToast

/** A reading goes on when the app is left, if a person has turned that on. */
class BackgroundReadingTest : AppTest() {
    @Test
    fun `until a person turns it on a reading starts no service`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        waitUntil { chat.activity.shows(R.id.reading) }
        assertNull(shadowOf(app).nextStartedService)
        chat.waitUntilReady()
        chat.leave()
    }

    @Test
    fun `a notification shows the progress after the app is left, and goes away with the end`() {
        val (chat, service) = readInBackground()
        assertEquals(
            ServiceInfo.FOREGROUND_SERVICE_TYPE_DATA_SYNC,
            service.get().foregroundServiceType,
        )
        chat.controller.pause().stop()
        val seen = LinkedHashSet<Int>()
        waitUntil(seconds = 120) {
            val notification = service.notification
            if (notification != null && notification.extras.getInt(Notification.EXTRA_PROGRESS_MAX) > 0) {
                assertEquals("Reading book.txt", notification.extras.getString(Notification.EXTRA_TITLE))
                assertTrue(" tokens" in notification.extras.getString(Notification.EXTRA_TEXT).orEmpty())
                seen += notification.extras.getInt(Notification.EXTRA_PROGRESS)
            }
            shadowOf(service.get()).isStoppedBySelf
        }
        assertTrue("$seen", seen.isNotEmpty() && seen.toList() == seen.sorted())
        assertTrue(shadowOf(service.get()).isForegroundStopped)
        assertEquals(Phase.Ready, chat.state.phase)
        assertEquals(0, chat.state.unread)
        service.destroy()
        chat.controller.destroy()
    }

    @Test
    fun `the notification's button stops the reading, and what is unread stays for later`() {
        val (chat, service) = readInBackground()
        chat.controller.pause().stop()
        waitUntil { (service.notification?.actions?.size ?: 0) == 1 }
        val action = checkNotNull(service.notification).actions.single()
        assertEquals("Stop", action.title)
        val intent = shadowOf(action.actionIntent).savedIntent
        assertEquals(ReadingService::class.java.name, intent.component?.className)
        service.get().onStartCommand(intent, 0, 2)
        waitUntil { chat.state.phase == Phase.Ready && shadowOf(service.get()).isStoppedBySelf }
        assertTrue("${chat.state.unread}", chat.state.unread > 0)
        service.destroy()
        chat.controller.destroy()
    }

    @Test
    fun `when the day's allowance is used up the service ends and the reading isn't lost`() {
        val (chat, service) = readInBackground()
        service.get().onTimeout(1, ServiceInfo.FOREGROUND_SERVICE_TYPE_DATA_SYNC)
        assertTrue(shadowOf(service.get()).isStoppedBySelf)
        chat.waitUntilReady()
        assertEquals(0, chat.state.unread)
        service.destroy()
        chat.leave()
    }

    @Test
    fun `the permission is explained before the system asks, and a refusal leaves the setting off`() {
        val screen = Robolectric.buildActivity(SettingsActivity::class.java).setup().get()
        val switch = screen.view<Switch>(R.id.background)
        waitUntil { !switch.isChecked }
        switch.isChecked = true
        val explained = shadowOf(latestDialog()).message.toString()
        assertTrue(explained, "permission to show notifications" in explained)
        latestDialog().getButton(AlertDialog.BUTTON_NEGATIVE).performClick()
        waitUntil { !switch.isChecked }
        assertNull(shadowOf(screen).lastRequestedPermission)

        switch.isChecked = true
        latestDialog().getButton(AlertDialog.BUTTON_POSITIVE).performClick()
        waitUntil { shadowOf(screen).lastRequestedPermission != null }
        val request = shadowOf(screen).lastRequestedPermission
        assertEquals(listOf(Manifest.permission.POST_NOTIFICATIONS), request.requestedPermissions.toList())
        screen.answer(request.requestCode, PackageManager.PERMISSION_DENIED)
        assertFalse(switch.isChecked || app.services.settings.settings.value.background)
        assertEquals(screen.getString(R.string.background_refused), ShadowToast.getTextOfLatestToast())

        switch.isChecked = true
        latestDialog().getButton(AlertDialog.BUTTON_POSITIVE).performClick()
        shadowOf(app).grantPermissions(Manifest.permission.POST_NOTIFICATIONS)
        screen.answer(request.requestCode, PackageManager.PERMISSION_GRANTED)
        assertTrue(switch.isChecked && app.services.settings.settings.value.background)
        switch.isChecked = false
        assertFalse(app.services.settings.settings.value.background)
    }

    private fun SettingsActivity.answer(
        request: Int,
        result: Int,
    ) = onRequestPermissionsResult(request, arrayOf(Manifest.permission.POST_NOTIFICATIONS), intArrayOf(result))

    /** A reading whose screen has started the service, which follows it. */
    private fun readInBackground(): Pair<ChatScreen, ServiceController<ReadingService>> {
        app.services.settings.update { it.copy(background = true) }
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        var started: Intent? = null
        waitUntil {
            started = started ?: shadowOf(app).nextStartedService
            started != null
        }
        assertEquals(ReadingService::class.java.name, started?.component?.className)
        val service = Robolectric.buildService(ReadingService::class.java, started).create().startCommand(0, 1)
        return chat to service
    }

    private val ServiceController<ReadingService>.notification: Notification?
        get() = shadowOf(get()).lastForegroundNotification

    private companion object {
        const val LONG = 20_000
    }
}
