package io.edgeinfinite.app

import android.content.ComponentCallbacks2
import android.os.Looper
import android.view.View
import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.ChatItem
import io.edgeinfinite.app.ui.viewmodel.Phase
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test
import org.robolectric.Shadows.shadowOf
import java.io.File

/** Work that the system cuts off, with the process or for its memory, goes on from where it was saved. */
class CutOffTest : AppTest(longest = 24) {
    @Test
    fun `a reading that died with the process goes on, and the answer is as if it had not`() {
        val expected = undisturbed()

        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        waitUntil { chat.state.tokensRead > LONG / 4 }
        app.onTrimMemory(ComponentCallbacks2.TRIM_MEMORY_UI_HIDDEN)
        waitUntil { savedTokens(chat) > LONG / 4 }
        dieNow(chat)

        val saved = savedTokens(chat)
        assertTrue("$saved", saved in LONG / 4..LONG - 1L)
        val home = openHome()
        waitUntil { home.rows(R.id.chats) == 1 }
        val again = ChatScreen.open(chat.id)
        waitUntil { again.activity.shows(R.id.reading) }
        assertEquals("Reading book.txt", again.activity.textOf(R.id.reading_name))
        again.waitUntilReady()
        assertEquals(listOf(ChatItem.File("book.txt")), again.state.items)
        assertEquals(0, again.state.unread)
        assertEquals(expected, again.state.tokensRead to again.ask(QUESTION).text)
        again.leave()
    }

    @Test
    fun `a file is on disk as soon as its first chunk is read`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        waitUntil { savedTokens(chat) > 0 }
        dieNow(chat)
        val saved = savedTokens(chat)
        assertTrue("$saved", saved in 1 until LONG / 2)
        val again = ChatScreen.open(chat.id)
        waitUntil { again.state.phase == Phase.Ready && again.state.unread == 0 }
        assertTrue(again.state.tokensRead > LONG)
        again.leave()
    }

    @Test
    fun `an answer that died with the process keeps what was saved of it`() {
        app.services.settings.update { it.copy(maxNewTokens = 600) }
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.send("Go on and on")
        waitUntil { chat.answers.lastOrNull()?.text.orEmpty().length > 3 }
        app.onTrimMemory(ComponentCallbacks2.TRIM_MEMORY_UI_HIDDEN)
        waitUntil { savedTokens(chat) > 0 }
        dieNow(chat)

        val again = ChatScreen.open(chat.id).waitUntilReady()
        val answer = again.answers.single()
        assertTrue(answer.text.length > 3)
        assertEquals(AnswerFigures.End.STOPPED, answer.figures?.end)
        app.services.settings.update { it.copy(maxNewTokens = 8) }
        again.ask("And now?")
        assertEquals(2, again.answers.size)
        again.leave()
    }

    @Test
    fun `a reading that low memory cut off goes on when it is looked at again`() {
        val expected = undisturbed()
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        waitUntil { chat.state.tokensRead > LONG / 4 }
        app.onTrimMemory(ComponentCallbacks2.TRIM_MEMORY_BACKGROUND)
        waitUntil { !app.services.oneAtATime.isLocked }
        assertTrue("${chat.state.tokensRead}", chat.state.tokensRead < LONG)
        chat.controller.pause().stop().restart().start().resume()
        shadowOf(Looper.getMainLooper()).idle()
        waitUntil { chat.state.phase == Phase.Ready && chat.state.unread == 0 }
        assertEquals(null, chat.state.notice)
        assertEquals(expected, chat.state.tokensRead to chat.ask(QUESTION).text)
        chat.leave()
    }

    @Test
    fun `a reading that the person stopped waits for the person, who can have it go on`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        waitUntil { chat.state.tokensRead > LONG / 4 }
        chat.activity.view<View>(R.id.send).performClick()
        chat.waitUntilReady()
        val read = chat.state.tokensRead
        chat.leave()
        killProcess()

        val again = ChatScreen.open(chat.id).waitUntilReady()
        assertEquals(read, again.state.tokensRead)
        waitUntil { again.activity.shows(R.id.notice_action) }
        assertEquals("Read on", again.activity.textOf(R.id.notice_action))
        again.activity.view<View>(R.id.notice_action).performClick()
        waitUntil { again.state.phase == Phase.Ready && again.state.unread == 0 }
        assertTrue(again.state.tokensRead > LONG)
        again.leave()
    }

    /** Tokens read and an answer, of a reading that nothing disturbed. */
    private fun undisturbed(): Pair<Long, String> {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.attach(book(LONG))
        waitUntil { chat.state.tokensRead > 0 }
        chat.waitUntilReady()
        val expected = chat.state.tokensRead to chat.ask(QUESTION).text
        chat.leave()
        app.services.home.deleteChat(chat.id)
        waitUntil { app.services.chats.list().isEmpty() }
        return expected
    }

    private fun savedTokens(chat: ChatScreen): Long = app.services.chats.find(chat.id)?.tokensRead ?: 0

    /** Ends the process: whatever this one still writes, the next one finds the disk as it is now. */
    private fun dieNow(chat: ChatScreen) {
        val disk = File(app.filesDir, "chats")
        val asItIs = folder.newFolder().also { disk.copyRecursively(it, overwrite = true) }
        chat.leave()
        disk.deleteRecursively()
        asItIs.copyRecursively(disk)
        killProcess()
    }

    private companion object {
        const val LONG = 30_000
        const val QUESTION = "Where was it?"
    }
}
