package io.edgeinfinite.app

import android.app.AlertDialog
import android.content.ClipboardManager
import android.content.Intent
import android.view.View
import android.widget.EditText
import android.widget.ListView
import android.widget.TextView
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.screens.ChatActivity
import io.edgeinfinite.app.ui.viewmodel.ChatItem
import io.edgeinfinite.core.Library
import io.edgeinfinite.core.SamplingOptions
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertTrue
import org.junit.Test
import org.robolectric.Shadows.shadowOf
import org.robolectric.fakes.RoboMenuItem
import java.io.File

/** Turns taken back, changed, asked again and copied; what a chat is told first; readings as files. */
class TurnsTest : AppTest(longest = 16) {
    @Test
    fun `a turn is taken back bit for bit, and its question can be changed`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.ask("First?")
        val before = chat.state.session
        val expected = chat.ask("Second?").text
        chat.choose(R.id.take_back)
        waitUntil { chat.state.items.size == 2 && chat.state.canTakeBack }
        assertEquals(before, chat.state.session)
        assertEquals(1, checkNotNull(app.services.chats.find(chat.id)).figures.size)
        assertEquals(expected, chat.ask("Second?").text)

        chat.choose(R.id.edit_question)
        waitUntil { chat.draft == "Second?" && chat.state.items.size == 2 }
        assertEquals(before, chat.state.session)
        assertEquals(expected, chat.ask("Second?").text)
        chat.leave()
    }

    @Test
    fun `everything can be taken back, and the empty chat goes on`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        val expected = chat.ask("First?").text
        chat.choose(R.id.take_back)
        waitUntil { chat.state.items.isEmpty() && chat.state.canSetSystem }
        assertEquals(0L, chat.state.tokensRead)
        assertFalse(chat.enabled(R.id.take_back))
        chat.leave()
        killProcess()
        val again = ChatScreen.open(chat.id).waitUntilReady()
        assertEquals(null, again.state.notice)
        assertEquals(expected, again.ask("First?").text)
        again.leave()
    }

    @Test
    fun `a sampled question is answered again with the chat as it was before`() {
        val sampling = SamplingOptions(temperature = 1.0, seed = 3)
        app.services.settings.update { it.copy(sampling = sampling) }
        val chat = ChatScreen.start(Fixture.ENDLESS)
        val first = chat.ask("Say something")
        chat.choose(R.id.try_again)
        waitUntil { chat.answers.singleOrNull()?.figures != null && chat.answers.single() != first }
        chat.waitUntilReady()
        assertNotEquals(first.text, chat.answers.single().text)
        assertEquals(ChatItem.User("Say something"), chat.state.items[0])
        assertEquals(2, chat.state.items.size)
        chat.leave()
    }

    @Test
    fun `a greedy answer would come out the same, so it can't be asked for again`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.ask("Say something")
        assertTrue(chat.enabled(R.id.take_back))
        assertFalse(chat.enabled(R.id.try_again))
        chat.leave()
    }

    @Test
    fun `a copy of a chat goes on by itself`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.ask("First?")
        chat.choose(R.id.fork)
        waitUntil { chat.activity.isFinishing }
        val started = shadowOf(chat.activity).nextStartedActivity
        val copied = checkNotNull(started.getStringExtra("chat"))
        assertNotEquals(chat.id, copied)
        chat.leave()
        val copy = ChatScreen.open(copied).waitUntilReady()
        val other = copy.ask("Second?").text
        copy.leave()
        val original = ChatScreen.open(chat.id).waitUntilReady()
        assertEquals(2, original.state.items.size)
        assertEquals(other, original.ask("Second?").text)
        original.leave()
    }

    @Test
    fun `a system prompt is read before the first message and can't be changed afterwards`() {
        val plain = ChatScreen.start(Fixture.ENDLESS)
        plain.ask("Hello")
        val without = plain.state.tokensRead
        plain.leave()

        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.choose(R.id.system)
        latestDialog().view<EditText>(R.id.system_text).setText(SYSTEM)
        latestDialog().getButton(AlertDialog.BUTTON_POSITIVE).performClick()
        waitUntil { chat.state.system == SYSTEM && chat.state.canSetSystem }
        chat.leave()
        killProcess()
        val again = ChatScreen.open(chat.id).waitUntilReady()
        again.ask("Hello")
        val longer = again.state.tokensRead - without
        assertEquals("the template's own marks and a token for each byte", FRAME + SYSTEM.length.toLong(), longer)
        again.choose(R.id.system)
        assertFalse(latestDialog().view<View>(R.id.system_text).isEnabled)
        assertEquals(View.GONE, latestDialog().getButton(AlertDialog.BUTTON_POSITIVE).visibility)
        again.leave()
    }

    @Test
    fun `an answer ends before a stop text`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        val whole = chat.ask("Go on").text
        chat.choose(R.id.take_back)
        waitUntil { chat.state.items.isEmpty() && chat.state.canSetSystem }
        val stop = whole.substring(whole.length / 2, whole.length / 2 + 2)
        app.services.settingsScreen.setStop("\n$stop\n")
        assertEquals(listOf(stop), app.services.settings.settings.value.stop)
        assertEquals(whole.substringBefore(stop), chat.ask("Go on").text)
        chat.leave()
    }

    @Test
    fun `a message is copied, shared and selected from what a long press opens`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        val answer = chat.ask("Hello").text
        chat.longPress(1)
        shadowOf(latestDialog()).clickOnItem(0)
        val clipboard = app.getSystemService(ClipboardManager::class.java)
        assertEquals(answer, clipboard?.primaryClip?.getItemAt(0)?.text)
        chat.longPress(0)
        shadowOf(latestDialog()).clickOnItem(1)
        assertTrue(latestDialog().view<TextView>(R.id.text).isTextSelectable)
        assertEquals("Hello", latestDialog().view<TextView>(R.id.text).text.toString())
        chat.longPress(0)
        shadowOf(latestDialog()).clickOnItem(2)
        assertEquals("Hello", shared(chat.activity))
        chat.choose(R.id.share_chat)
        assertEquals("**You:** Hello\n\n$answer", shared(chat.activity))
        chat.leave()
    }

    @Test
    fun `an answer is reported through the share sheet, with its question and the model`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.ask("Hello")
        val answer = chat.ask("And now?").text
        chat.longPress(3)
        shadowOf(latestDialog()).clickOnItem(3)
        val report = shared(chat.activity).orEmpty()
        assertTrue(report, "Question:\nAnd now?\n\nAnswer:\n$answer" in report && "Hello" !in report)
        assertTrue(report, chat.state.model in report && Library.version in report)
        chat.longPress(2)
        assertEquals(4, shadowOf(latestDialog()).items.size) // a question has none
        chat.leave()
    }

    @Test
    fun `a reading is saved as a file and goes on from it, on a device that has the model`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(500))
        waitUntil { chat.state.tokensRead > 500 }
        chat.waitUntilReady()
        val target = folder.newFile("book.edgeinfinite")
        chat.choose(R.id.save_reading)
        val picker = chat.activity.pick(PickedFiles.file(target))
        assertEquals(Intent.ACTION_CREATE_DOCUMENT, picker.action)
        assertEquals("book.edgeinfinite", picker.getStringExtra(Intent.EXTRA_TITLE))
        waitUntil { target.length() > 0 && !app.services.chats.exported(chat.id).exists() }
        chat.waitUntilReady()
        val expected = chat.ask("Where was it?").text
        chat.leave()
        app.services.home.deleteChat(chat.id)

        val home = openHome()
        home.onOptionsItemSelected(RoboMenuItem(R.id.open_reading))
        home.pick(PickedFiles.file(target))
        lateinit var opened: String
        waitUntil { shadowOf(home).nextStartedActivity?.getStringExtra("chat")?.also { opened = it } != null }
        val again = ChatScreen.open(opened).waitUntilReady()
        assertEquals(listOf(ChatItem.File("book.txt")), again.state.items)
        assertEquals(expected, again.ask("Where was it?").text)
        again.leave()
    }

    @Test
    fun `a file that is no reading, and one of another model, leave nothing behind`() {
        val foreign = File(System.getProperty("edgeinfinite.fixtures"), "sessions")
        val home = openHome()
        val text = folder.newFile("notes.txt").apply { writeText("no reading") }
        home.onOptionsItemSelected(RoboMenuItem(R.id.open_reading))
        home.pick(PickedFiles.file(text))
        waitUntil { home.shows(R.id.notice) }
        assertEquals("notes.txt is no saved reading: choose another.", home.textOf(R.id.notice))
        val session = foreign.walk().first { it.name == "state_1.safetensors" }
        home.onOptionsItemSelected(RoboMenuItem(R.id.open_reading))
        home.pick(PickedFiles.file(session))
        waitUntil { "no model here" in home.textOf(R.id.notice).lowercase() }
        assertTrue(app.services.chats.list().isEmpty())
    }

    private fun shared(activity: ChatActivity): String? {
        val chooser = shadowOf(activity).nextStartedActivity
        assertEquals(Intent.ACTION_CHOOSER, chooser.action)
        @Suppress("DEPRECATION")
        return chooser.getParcelableExtra<Intent>(Intent.EXTRA_INTENT)?.getStringExtra(Intent.EXTRA_TEXT)
    }

    private val ChatScreen.draft get() = activity.textOf(R.id.message)

    private fun ChatScreen.choose(item: Int) {
        waitUntil(what = "the menu's item") { enabled(item) }
        activity.onOptionsItemSelected(RoboMenuItem(item))
    }

    private fun ChatScreen.enabled(item: Int): Boolean {
        activity.window.invalidatePanelMenu(0)
        val menu = org.robolectric.fakes.RoboMenu(activity)
        activity.onCreateOptionsMenu(menu)
        activity.onPrepareOptionsMenu(menu)
        return menu.findItem(item).isEnabled
    }

    private fun ChatScreen.longPress(position: Int) {
        val list = activity.view<ListView>(R.id.messages)
        waitUntil { list.adapter.count > position }
        val row = list.adapter.getView(position, null, list)
        assertTrue(row.view<View>(R.id.text).performLongClick())
    }

    private fun <T : View> AlertDialog.view(id: Int): T = checkNotNull(findViewById<T>(id))

    private companion object {
        const val SYSTEM = "You are a pirate who answers in one short sentence."

        /** Bytes around a system message: "system" and a newline, a newline behind it. */
        const val FRAME = 8
    }
}
