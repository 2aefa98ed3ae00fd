package io.edgeinfinite.app

import android.view.View
import android.widget.ScrollView
import android.widget.TextView
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.screens.EXTRA_CHAT
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNotSame
import org.junit.Assert.assertNull
import org.junit.Assert.assertSame
import org.junit.Assert.assertTrue
import org.junit.Test
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config

/** A wide screen shows the list of chats beside the open one, and the first screen's lists side by side. */
@Config(qualifiers = "w1280dp-h800dp-land-mdpi")
class TabletTest : AppTest(longest = 8) {
    private fun chatAbout(text: String): String {
        val chat = ChatScreen.start()
        chat.ask(text)
        chat.leave()
        return chat.id
    }

    private fun ChatScreen.names() =
        List(activity.rows(R.id.chats)) { activity.row(R.id.chats, it).view<TextView>(R.id.name).text.toString() }

    @Test
    fun `a chat stands beside the list, which opens the others`() {
        val other = chatAbout("First")
        val chat = ChatScreen.open(chatAbout("Second")).waitUntilReady()
        waitUntil { chat.names() == listOf("Second", "First") }
        assertTrue(chat.activity.row(R.id.chats).isActivated)
        assertEquals(View.GONE, chat.activity.row(R.id.chats).view<View>(R.id.delete).visibility)
        chat.activity.row(R.id.chats).performClick()
        assertNull("it is open", shadowOf(chat.activity).nextStartedActivity)
        chat.activity.row(R.id.chats, 1).performClick()
        assertEquals(other, shadowOf(chat.activity).nextStartedActivity.getStringExtra(EXTRA_CHAT))
        assertTrue(chat.activity.isFinishing)
        val opened = ChatScreen.open(other).waitUntilReady()
        chat.controller.pause().stop().destroy()
        assertEquals(2, opened.state.items.size)
        opened.ask("Third")
        waitUntil(what = "the newest chat's being first") { opened.names() == listOf("First", "Second") }
        opened.leave()
    }

    @Test
    fun `a new chat is begun from beside the open one, with the same model`() {
        val chat = ChatScreen.open(chatAbout("First")).waitUntilReady()
        chat.activity.view<View>(R.id.new_chat).performClick()
        val id = checkNotNull(shadowOf(chat.activity).nextStartedActivity.getStringExtra(EXTRA_CHAT))
        assertNotEquals(chat.id, id)
        assertEquals(Fixture.MODEL, app.services.chats.find(id)?.model)
        chat.leave()
    }

    @Test
    fun `models and chats stand side by side`() {
        chatAbout("First")
        val home = openHome()
        waitUntil { home.rows(R.id.models) == 2 && home.rows(R.id.chats) == 1 }
        assertNotSame(home.column(R.id.models), home.column(R.id.chats))
    }

    @Test
    @Config(qualifiers = "w800dp-h1280dp-port-mdpi")
    fun `upright there is room for one thing at a time`() {
        val chat = ChatScreen.open(chatAbout("First")).waitUntilReady()
        assertNull(chat.activity.findViewById<View>(R.id.chats))
        chat.leave()
        val home = openHome()
        assertSame(home.column(R.id.models), home.column(R.id.chats))
    }

    private fun android.app.Activity.column(id: Int): ScrollView =
        generateSequence(view<View>(id).parent) { it.parent }.filterIsInstance<ScrollView>().first()
}
