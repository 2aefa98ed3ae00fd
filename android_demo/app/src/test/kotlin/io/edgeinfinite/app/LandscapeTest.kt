package io.edgeinfinite.app

import android.graphics.Insets
import android.os.Looper
import android.view.View
import android.view.WindowInsets
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.Phase
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Test
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config

/** A phone in landscape, whose keyboard takes half of the screen. */
@Config(qualifiers = "w891dp-h411dp-land-mdpi")
class LandscapeTest : AppTest() {
    @Test
    fun `while a text is read the keyboard leaves room for messages, and the toolbar tells the progress`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        waitUntil { chat.state.phase is Phase.Reading && chat.state.tokensRead > 0 }
        chat.layOut(keyboard = KEYBOARD)
        assertTrue(chat.state.phase is Phase.Reading)
        assertTrue("${chat.heightOf(R.id.messages)}", chat.heightOf(R.id.messages) >= LEAST)
        assertTrue("${chat.heightOf(R.id.message)}", chat.heightOf(R.id.message) >= TOUCH)
        assertFalse(chat.activity.shows(R.id.reading))
        assertTrue("${chat.activity.actionBar?.subtitle}", "tokens" in "${chat.activity.actionBar?.subtitle}")

        chat.layOut(keyboard = 0)
        assertTrue(chat.activity.shows(R.id.reading))
        assertTrue("${chat.heightOf(R.id.messages)}", chat.heightOf(R.id.messages) >= LEAST)
        assertEquals(chat.state.model, chat.activity.actionBar?.subtitle)
        chat.activity.view<View>(R.id.send).performClick()
        chat.waitUntilReady()

        // Stopped: the notice waits until the keyboard is closed.
        chat.layOut(keyboard = KEYBOARD)
        assertFalse(chat.activity.shows(R.id.notice))
        assertTrue("${chat.heightOf(R.id.messages)}", chat.heightOf(R.id.messages) >= LEAST)
        chat.layOut(keyboard = 0)
        assertTrue(chat.activity.shows(R.id.notice))
        chat.leave()
    }

    @Test
    fun `an empty chat's prompts give way to the keyboard`() {
        val chat = ChatScreen.start()
        chat.layOut(keyboard = KEYBOARD)
        assertFalse(chat.activity.shows(R.id.prompts))
        assertTrue(chat.activity.shows(R.id.empty_title))
        chat.layOut(keyboard = 0)
        assertTrue(chat.activity.shows(R.id.prompts))
        chat.leave()
    }

    private fun ChatScreen.heightOf(id: Int) = activity.view<View>(id).height

    /** As the window does it, below a status bar; pixels are dp here. */
    private fun ChatScreen.layOut(keyboard: Int) {
        val window = activity.window.decorView
        val insets =
            WindowInsets
                .Builder()
                .setInsets(WindowInsets.Type.statusBars(), Insets.of(0, BAR, 0, 0))
                .setInsets(WindowInsets.Type.ime(), Insets.of(0, 0, 0, keyboard))
                .build()
        val metrics = activity.resources.displayMetrics
        val exactly = { pixels: Int -> View.MeasureSpec.makeMeasureSpec(pixels, View.MeasureSpec.EXACTLY) }
        repeat(2) {
            shadowOf(Looper.getMainLooper()).idle()
            activity.view<View>(R.id.root).dispatchApplyWindowInsets(insets)
            window.measure(exactly(metrics.widthPixels), exactly(metrics.heightPixels))
            window.layout(0, 0, metrics.widthPixels, metrics.heightPixels)
        }
    }

    private companion object {
        const val LONG = 200_000
        const val BAR = 24
        const val KEYBOARD = 200
        const val LEAST = 40
        const val TOUCH = 48
    }
}
