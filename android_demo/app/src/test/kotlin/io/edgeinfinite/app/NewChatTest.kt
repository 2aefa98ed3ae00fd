package io.edgeinfinite.app

import android.view.ViewGroup
import android.widget.TextView
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.ChatItem
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Test

/** What a chat without messages offers, and how it is called once it has some. */
class NewChatTest : AppTest(longest = 8) {
    @Test
    fun `an empty chat offers prompts, and the one that is touched is asked`() {
        val chat = ChatScreen.start()
        val prompts = app.resources.getStringArray(R.array.prompts).toList()
        waitUntil { chat.activity.shows(R.id.prompts) }
        val offered = chat.activity.view<ViewGroup>(R.id.prompts)
        assertEquals(prompts, List(offered.childCount) { (offered.getChildAt(it) as TextView).text.toString() })
        offered.getChildAt(1).performClick()
        waitUntil { chat.answers.isNotEmpty() && chat.state.canTakeBack }
        assertEquals(ChatItem.User(prompts[1]), chat.state.items.first())
        assertFalse(chat.activity.shows(R.id.empty))
        chat.leave()
    }

    @Test
    fun `a chat is named by its first message, and by its book once it has one`() {
        val chat = ChatScreen.start()
        assertEquals(Fixture.MODEL, chat.activity.actionBar?.title)
        chat.ask("Hello there")
        waitUntil { chat.activity.actionBar?.title == "Hello there" }
        assertEquals(Fixture.MODEL, chat.activity.actionBar?.subtitle)
        chat.attach(book(200, name = "The windmill.txt"))
        waitUntil { chat.activity.actionBar?.title == "The windmill" }
        chat.waitUntilReady()
        assertEquals(ChatItem.File("The windmill.txt"), chat.state.items.last())
        chat.leave()
        val home = openHome()
        waitUntil { home.rows(R.id.chats) == 1 }
        assertEquals("The windmill", home.row(R.id.chats).view<TextView>(R.id.name).text.toString())
    }

    @Test
    fun `a book that has a title is called so`() {
        val chat = ChatScreen.start()
        val page = folder.newFile("pg17.html")
        val title = "<title>The\n  Mill &amp; the Sea</title>"
        page.writeText("<html><head>$title</head><p>${Fixture.longText(200)}</p></html>")
        chat.attach(PickedFiles.file(page))
        waitUntil { chat.state.tokensRead > 200 }
        chat.waitUntilReady()
        assertEquals(ChatItem.File("The Mill & the Sea"), chat.state.items.single())
        assertEquals("The Mill & the Sea", chat.state.title)
        chat.leave()
    }
}
