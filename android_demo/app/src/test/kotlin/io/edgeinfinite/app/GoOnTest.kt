package io.edgeinfinite.app

import android.view.View
import android.widget.ListView
import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.Phase
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Test

/** An answer that was as long as it might be goes on when a person wants more of it. */
class GoOnTest : AppTest(longest = SHORT) {
    private val whole by lazy {
        answers(2 * SHORT)
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.ask("Tell").text.also {
            chat.leave()
            answers(SHORT)
        }
    }

    @Test
    fun `a cut answer goes on as one answer, and is taken back as one`() {
        val expected = whole
        val chat = ChatScreen.start(Fixture.ENDLESS)
        val cut = chat.ask("Tell")
        assertEquals(AnswerFigures.End.CUT, cut.figures?.end)
        assertEquals(0, chat.state.unread)
        assertFalse(chat.activity.shows(R.id.notice))
        chat.goOn()
        assertEquals(expected, chat.answers.single().text)
        assertEquals(cut.figures?.ttftS, chat.answers.single().figures?.ttftS)
        assertTrue(chat.offersMore())
        chat.activity.onOptionsItemSelected(org.robolectric.fakes.RoboMenuItem(R.id.take_back))
        waitUntil { chat.state.items.isEmpty() && chat.state.canSetSystem }
        chat.leave()
    }

    @Test
    fun `it still can after the process died, and not once something else was asked`() {
        val expected = whole
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.ask("Tell")
        chat.leave()
        killProcess()
        val again = ChatScreen.open(chat.id).waitUntilReady()
        again.goOn()
        assertEquals(expected, again.answers.single().text)
        again.ask("Why?")
        assertFalse(again.offersMore(position = 1))
        assertTrue(again.offersMore(position = 3))
        again.leave()
    }

    @Test
    fun `one that is stopped while it goes on keeps what was written`() {
        val chat = ChatScreen.start(Fixture.ENDLESS)
        val cut = chat.ask("Tell").text
        answers(2_000)
        chat.button().performClick()
        waitUntil { chat.answers.single().text.length > cut.length + SHORT }
        chat.activity.view<View>(R.id.send).performClick()
        waitUntil { chat.state.phase == Phase.Ready }
        assertEquals(AnswerFigures.End.STOPPED, chat.answers.single().figures?.end)
        assertTrue(chat.answers.single().text.startsWith(cut))
        assertFalse(chat.offersMore())
        chat.leave()
    }

    @Test
    fun `an answer that ended by itself doesn't offer it`() {
        answers(2_000)
        val chat = ChatScreen.start()
        assertEquals(null, chat.ask("Tell").figures?.end)
        assertFalse(chat.offersMore())
        chat.leave()
    }

    private fun ChatScreen.goOn() {
        val before = answers.last().text.length
        button().performClick()
        waitUntil { answers.last().text.length > before && state.phase == Phase.Ready }
    }

    private fun ChatScreen.offersMore(position: Int = state.items.lastIndex): Boolean =
        button(position).visibility == View.VISIBLE

    private fun ChatScreen.button(position: Int = state.items.lastIndex): View {
        val list = activity.view<ListView>(R.id.messages)
        waitUntil { list.adapter.count == state.items.size && list.adapter.getItem(position) == state.items[position] }
        return list.adapter.getView(position, null, list).view(R.id.go_on)
    }

    private companion object {
        const val SHORT = 12
    }
}
