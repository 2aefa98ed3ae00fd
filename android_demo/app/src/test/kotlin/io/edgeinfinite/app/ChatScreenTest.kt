package io.edgeinfinite.app

import android.content.ComponentCallbacks2
import android.content.res.Configuration
import android.os.Bundle
import android.os.Looper
import android.view.View
import android.widget.EditText
import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.ChatItem
import io.edgeinfinite.app.ui.viewmodel.Notice
import io.edgeinfinite.app.ui.viewmodel.Phase
import io.edgeinfinite.core.SamplingOptions
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNotNull
import org.junit.Assert.assertTrue
import org.junit.Test
import org.robolectric.Shadows.shadowOf
import java.io.File

/** A chat, answered by onnxruntime itself on the exported tiny artifact. */
class ChatScreenTest : AppTest(longest = 64) {
    @Test
    fun `an answer streams piece by piece and ends with its figures`() {
        val chat = ChatScreen.start()
        val lengths = LinkedHashSet<Int>()
        chat.send("Who is there?")
        waitUntil {
            chat.answers.lastOrNull()?.let { lengths += it.text.length }
            chat.state.phase == Phase.Ready && chat.answers.isNotEmpty()
        }
        assertTrue("seen at lengths $lengths", lengths.size > 5)
        assertEquals(lengths.sorted(), lengths.toList())
        val figures = checkNotNull(chat.answers.single().figures)
        assertTrue(checkNotNull(figures.ttftS) > 0)
        assertTrue(checkNotNull(figures.prefillTokensPerS) > 0)
        assertTrue(checkNotNull(figures.decodeTokensPerS) > 0)
        assertEquals("", chat.activity.view<EditText>(R.id.message).text.toString())
        chat.leave()
    }

    @Test
    fun `stop ends an answer, keeps what was written, and the chat goes on`() {
        answers(longest = 1024)
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.send("Go on and on")
        waitUntil { chat.answers.lastOrNull()?.text.orEmpty().length > 3 }
        assertEquals(chat.activity.getString(R.string.stop), chat.activity.view<View>(R.id.send).contentDescription)
        chat.activity.view<View>(R.id.send).performClick()
        chat.waitUntilReady()
        val answer = chat.answers.single()
        assertEquals(AnswerFigures.End.STOPPED, answer.figures?.end)
        assertTrue(answer.text.length in 4..900)
        answers(longest = 8)
        chat.ask("And now?")
        assertEquals(2, chat.answers.size)
        chat.leave()
    }

    @Test
    fun `a long file is read segment by segment while the state stays the same size`() {
        val chat = ChatScreen.start()
        val before = checkNotNull(chat.state.session)
        chat.attach(book(LONG))
        val progress = LinkedHashSet<String>()
        val states = LinkedHashSet<Long>()
        waitUntil {
            if (chat.activity.shows(R.id.reading)) progress += chat.activity.textOf(R.id.reading_segment)
            chat.state.session?.let { states += it.stateBytes }
            chat.state.phase == Phase.Ready && chat.state.items.isNotEmpty()
        }
        assertTrue("$progress", progress.size > 5)
        val last = "Segment (\\d+) of (\\d+)".toRegex().matchEntire(progress.last())
        assertEquals(LONG / Fixture.SEGMENT + 1, checkNotNull(last).groupValues[2].toInt())
        assertEquals(setOf(before.stateBytes), states)
        val after = checkNotNull(chat.state.session)
        assertTrue(after.tokensRead > LONG)
        assertTrue(after.compressions > LONG / Fixture.SEGMENT - 3)
        assertEquals(ChatItem.File("book.txt"), chat.state.items.single())
        chat.ask("Where was the treasure buried?")
        assertEquals(before.stateBytes, chat.state.session?.stateBytes)
        chat.leave()
    }

    @Test
    fun `a reading can be stopped, and its rest be skipped`() {
        val chat = ChatScreen.start()
        chat.attach(book(VERY_LONG))
        waitUntil { (chat.state.session?.tokensRead ?: 0) > 10 * Fixture.SEGMENT }
        chat.activity.view<View>(R.id.send).performClick()
        chat.waitUntilReady()
        val read = chat.state.tokensRead
        assertTrue("$read", read < VERY_LONG)
        assertTrue(chat.state.unread > 0)
        waitUntil { chat.activity.shows(R.id.notice_more) }
        chat.activity.view<View>(R.id.notice_more).performClick()
        waitUntil { chat.state.unread == 0 }
        waitUntil { !chat.activity.shows(R.id.notice) }
        assertEquals(read, chat.state.tokensRead)
        chat.ask("What is it about?")
        chat.leave()
    }

    @Test
    fun `a file that is no text is refused with one message`() {
        val chat = ChatScreen.start()
        chat.attach(PickedFiles.file(folder.newFile("photo.bin").apply { writeBytes(byteArrayOf(-1, 0, 7)) }))
        waitUntil { chat.activity.shows(R.id.notice) }
        val refusal =
            "photo.bin is no document of a kind that can be read: choose a text, Markdown, HTML, EPUB, Word (.docx) or PDF file."
        assertEquals(refusal, chat.activity.textOf(R.id.notice_text))
        assertEquals(0L, chat.state.tokensRead)
        chat.leave()
    }

    @Test
    fun `turning the device does not disturb an answer`() {
        answers(longest = 300)
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.send("Go on")
        waitUntil { chat.answers.lastOrNull()?.text.orEmpty().isNotEmpty() }
        chat.activity.view<EditText>(R.id.message).setText("half a que")
        val old = chat.activity
        val turned = Configuration(old.resources.configuration)
        turned.orientation = Configuration.ORIENTATION_LANDSCAPE
        turned.screenWidthDp = 891
        turned.screenHeightDp = 411
        chat.controller.configurationChange(turned)
        assertNotEquals(old, chat.activity)
        assertTrue(chat.state.canStop)
        assertEquals("half a que", chat.activity.view<EditText>(R.id.message).text.toString())
        chat.waitUntilReady()
        assertEquals(AnswerFigures.End.CUT, chat.answers.single().figures?.end)
        chat.leave()
    }

    @Test
    fun `a chat goes on after the process died as if it had not`() {
        answers(longest = 24)
        val control = ChatScreen.start(Fixture.ENDLESS)
        val expected = QUESTIONS.map { control.ask(it).text }
        control.leave()

        val chat = ChatScreen.start(Fixture.ENDLESS)
        val first = chat.ask(QUESTIONS[0]).text
        chat.activity.view<EditText>(R.id.message).setText("draft")
        val saved = Bundle()
        chat.controller.pause().stop().saveInstanceState(saved)
        val before = chat.state
        killProcess()

        val again = ChatScreen.open(chat.id, saved).waitUntilReady()
        assertEquals(before.items, again.state.items)
        assertEquals(before.session, again.state.session)
        assertEquals("draft", again.activity.view<EditText>(R.id.message).text.toString())
        assertEquals(expected, listOf(first, again.ask(QUESTIONS[1]).text))
        again.leave()
    }

    @Test
    fun `low memory stops and frees, and the chat goes on afterwards`() {
        answers(longest = 1024)
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.send("Go on and on")
        waitUntil { chat.answers.lastOrNull()?.text.orEmpty().isNotEmpty() }
        app.onTrimMemory(ComponentCallbacks2.TRIM_MEMORY_BACKGROUND)
        waitUntil { !app.services.oneAtATime.isLocked }
        assertEquals(Notice.LowMemory, chat.state.notice)
        assertEquals(AnswerFigures.End.STOPPED, chat.answers.single().figures?.end)
        val read = chat.state.tokensRead
        answers(longest = 8)
        chat.controller.pause().stop().restart().start().resume()
        shadowOf(Looper.getMainLooper()).idle()
        waitUntil { !app.services.oneAtATime.isLocked }
        chat.ask("Still there?")
        assertTrue(chat.state.tokensRead > read)
        assertEquals(2, chat.answers.size)
        chat.leave()
    }

    @Test
    fun `a damaged state file begins a new text and says so`() {
        val chat = ChatScreen.start()
        chat.ask("Hello")
        chat.leave()
        val file = app.services.chats.sessionFile(chat.id)
        file.writeBytes(file.readBytes().copyOf(100))
        val again = ChatScreen.open(chat.id).waitUntilReady()
        assertTrue(again.state.notice is Notice.HistoryLost)
        assertEquals(0L, again.state.tokensRead)
        again.ask("Hello again")
        again.leave()
    }

    @Test
    fun `a missing model is a message with a way to try again`() {
        val id = app.services.chats.create("gone").id
        val chat = ChatScreen.open(id)
        waitUntil { chat.state.phase is Phase.Failed && chat.activity.shows(R.id.notice) }
        assertEquals(chat.activity.getString(R.string.retry), chat.activity.textOf(R.id.notice_action))
        assertFalse(chat.activity.shows(R.id.notice_more))
        assertFalse(chat.activity.view<View>(R.id.send).isEnabled)
        Fixture.artifact.copyRecursively(File(app.filesDir, "models/gone"))
        chat.activity.view<View>(R.id.notice_action).performClick()
        waitUntil { chat.state.phase == Phase.Ready }
        chat.leave()
    }

    @Test
    fun `the same seed gives the same answer, another one another`() {
        val answers =
            listOf(7L, 7L, 8L).map { seed ->
                app.services.settings.update {
                    it.copy(sampling = SamplingOptions(temperature = 1.0, topP = 0.9, seed = seed))
                }
                val chat = ChatScreen.start()
                val text = chat.ask("Say something").text
                chat.leave()
                text
            }
        assertEquals(answers[0], answers[1])
        assertNotEquals(answers[0], answers[2])
    }

    @Test
    fun `a chat with words in it stands on the first screen`() {
        val chat = ChatScreen.start()
        chat.ask("What is a windmill?")
        chat.leave()
        val home = openHome()
        waitUntil { home.rows(R.id.chats) == 1 }
        assertNotNull(app.services.chats.find(chat.id))
    }

    private companion object {
        const val LONG = 6_000
        const val VERY_LONG = 200_000
        val QUESTIONS = listOf("First?", "Second?")
    }
}
