package io.edgeinfinite.app

import android.view.View
import android.widget.ProgressBar
import android.widget.TextView
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.Phase
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Test

/** A reading doesn't need its screen. */
class LeavingTest : AppTest(longest = 8) {
    @Test
    fun `the screen stays on while a text is read, and only then`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        assertFalse(chat.staysOn)
        chat.attach(book(LONG))
        waitUntil { chat.state.phase is Phase.Reading && chat.staysOn }
        waitUntil { chat.state.phase == Phase.Ready && !chat.staysOn }
        chat.leave()
    }

    @Test
    fun `going back doesn't stop a reading, the first screen shows its progress, and then it is freed`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        waitUntil { chat.state.tokensRead > LONG / 10 }
        val viewModel = checkNotNull(app.services.chat(chat.id))
        chat.activity.finish()
        chat.controller.pause().stop().destroy()
        val home = openHome()
        val seen = LinkedHashSet<String>()
        waitUntil {
            if (home.rows(R.id.chats) == 1 && home.row(R.id.chats).view<View>(R.id.progress).isShown) {
                seen += home.row(R.id.chats).view<TextView>(R.id.facts).text.toString()
                assertTrue(home.row(R.id.chats).view<ProgressBar>(R.id.progress).progress in 0..1000)
            }
            viewModel.state.value.phase == Phase.Ready && viewModel.state.value.tokensRead > LONG
        }
        assertTrue("$seen", seen.size > 2 && seen.all { "Reading: " in it })
        waitUntil { !app.services.oneAtATime.isLocked && app.services.chat(chat.id) !== viewModel }
        val again = ChatScreen.open(chat.id).waitUntilReady()
        assertEquals(0, again.state.unread)
        again.leave()
    }

    @Test
    fun `coming back while it reads shows the same reading`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        waitUntil { chat.state.tokensRead > LONG / 10 }
        chat.activity.finish()
        chat.controller.pause().stop().destroy()
        val again = ChatScreen.open(chat.id)
        assertTrue(again.state.phase is Phase.Reading)
        waitUntil { again.activity.shows(R.id.reading) }
        again.waitUntilReady()
        again.ask("Where was it?")
        again.leave()
    }

    @Test
    fun `another chat interrupts it, and it goes on when its own is opened again`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        waitUntil { chat.state.tokensRead > LONG / 10 }
        chat.activity.finish()
        chat.controller.pause().stop().destroy()
        val other = ChatScreen.start(Fixture.MODEL)
        other.ask("Hello")
        val read = checkNotNull(app.services.chats.find(chat.id)).tokensRead
        assertTrue("$read", read < LONG)
        other.leave()
        val again = ChatScreen.open(chat.id)
        waitUntil { again.state.phase == Phase.Ready && again.state.unread == 0 }
        assertTrue(again.state.tokensRead > LONG)
        again.leave()
    }

    private val ChatScreen.staysOn get() = activity.view<View>(R.id.root).keepScreenOn

    private companion object {
        const val LONG = 30_000
    }
}
