package io.edgeinfinite.app

import android.app.AlertDialog
import android.content.Intent
import android.net.Uri
import android.view.View
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.screens.ChatActivity
import io.edgeinfinite.app.ui.screens.HomeActivity
import io.edgeinfinite.app.ui.screens.OpenActivity
import io.edgeinfinite.app.ui.viewmodel.ChatItem
import io.edgeinfinite.app.ui.viewmodel.Notice
import io.edgeinfinite.app.ui.viewmodel.Phase
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.Shadows.shadowOf
import org.robolectric.shadows.ShadowDialog
import java.io.File

/** Documents that other apps share or open, and guesses that are told. */
@RunWith(RobolectricTestRunner::class)
class DocumentsTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val page by lazy {
        folder.newFile("page.html").apply { writeText("<html><h1>Sea</h1><p>${Fixture.longText(900)}</p></html>") }
    }

    @Test
    fun `a shared document becomes a chat with the model that was chosen`() {
        Fixture.install()
        val screen = open(Intent(Intent.ACTION_SEND).putExtra(Intent.EXTRA_STREAM, PickedFiles.file(page)))
        waitUntil { ShadowDialog.getLatestDialog() != null }
        shadowOf(ShadowDialog.getLatestDialog() as AlertDialog).clickOnItem(1)
        assertTrue(screen.isFinishing)
        val chat = follow(screen)
        waitUntil { chat.state.tokensRead > 900 }
        chat.waitUntilReady()
        assertEquals(listOf(ChatItem.File("page.html")), chat.state.items)
        assertEquals(Fixture.MODEL, chat.state.model)
        chat.controller.recreate()
        chat.waitUntilReady()
        assertEquals("read once only", 1, chat.state.items.size)
        chat.leave()
    }

    @Test
    fun `with one model an opened document is read at once`() {
        Fixture.install()
        File(app.filesDir, "models/${Fixture.ENDLESS}").deleteRecursively()
        val screen = open(Intent(Intent.ACTION_VIEW, PickedFiles.file(page)))
        waitUntil { screen.isFinishing }
        val chat = follow(screen)
        waitUntil { chat.state.tokensRead > 900 }
        chat.waitUntilReady()
        chat.leave()
    }

    @Test
    fun `a short shared text waits in the message's field, a long one is a document`() {
        Fixture.install()
        File(app.filesDir, "models/${Fixture.ENDLESS}").deleteRecursively()
        val short = follow(shared("What is a windmill?")).waitUntilReady()
        assertEquals("What is a windmill?", short.activity.textOf(R.id.message))
        short.leave()
        val long = follow(shared(Fixture.longText(2_500)))
        waitUntil { long.state.tokensRead > 2_500 }
        long.waitUntilReady()
        assertEquals(listOf(ChatItem.File("Shared text")), long.state.items)
        long.leave()
    }

    @Test
    fun `a file's path is not followed, since it could be the app's own`() {
        Fixture.install()
        val own = Uri.fromFile(File(app.filesDir, "settings.json"))
        val screen = open(Intent(Intent.ACTION_SEND).putExtra(Intent.EXTRA_STREAM, own))
        assertTrue(screen.isFinishing)
        assertNull(shadowOf(screen).nextStartedActivity)
        assertTrue(app.services.chats.list().isEmpty())
    }

    @Test
    fun `without a model the first screen opens`() {
        val screen = shared("Hello")
        waitUntil { screen.isFinishing }
        assertEquals(HomeActivity::class.java.name, shadowOf(screen).nextStartedActivity.component?.className)
    }

    @Test
    fun `a guessed encoding is shown with words that tell whether it is right`() {
        Fixture.install()
        val text = "Der Hund bellt. Die Füße sind naß, und schöne Grüße aus Köln über die Brücke.\n"
        val file = folder.newFile("alt.txt").apply { writeBytes(text.toByteArray(Charsets.ISO_8859_1)) }
        val chat = ChatScreen.start()
        chat.attach(PickedFiles.file(file))
        waitUntil { chat.state.notice is Notice.Guessed && chat.state.phase == Phase.Ready }
        val notice = chat.state.notice as Notice.Guessed
        assertNotEquals("UTF-8", notice.encoding)
        assertTrue(notice.sample, "Füße sind naß" in notice.sample)
        waitUntil { chat.activity.shows(R.id.notice) }
        assertTrue(notice.sample in chat.activity.textOf(R.id.notice_text))
        chat.activity.view<View>(R.id.notice_action).performClick()
        waitUntil { chat.state.notice == null }
        assertTrue("nothing stays behind", app.cacheDir.list().orEmpty().isEmpty())
        chat.leave()
    }

    private fun open(intent: Intent) = Robolectric.buildActivity(OpenActivity::class.java, intent).setup().get()

    private fun shared(text: String): OpenActivity =
        open(Intent(Intent.ACTION_SEND).setType("text/plain").putExtra(Intent.EXTRA_TEXT, text))

    private fun follow(screen: OpenActivity): ChatScreen {
        waitUntil { screen.isFinishing }
        val intent = shadowOf(screen).nextStartedActivity
        assertEquals(ChatActivity::class.java.name, intent.component?.className)
        val controller = Robolectric.buildActivity(ChatActivity::class.java, intent).setup()
        return ChatScreen(controller, checkNotNull(intent.getStringExtra("chat")))
    }
}
