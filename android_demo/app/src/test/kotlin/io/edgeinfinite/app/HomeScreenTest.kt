package io.edgeinfinite.app

import android.app.Activity
import android.app.AlertDialog
import android.content.Intent
import android.os.Looper
import android.view.View
import android.view.ViewGroup
import android.widget.LinearLayout
import android.widget.TextView
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.screens.ChatActivity
import io.edgeinfinite.app.ui.screens.HomeActivity
import io.edgeinfinite.app.ui.viewmodel.Notice
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.Shadows.shadowOf
import org.robolectric.shadows.ShadowDialog
import org.robolectric.shadows.ShadowToast
import java.io.File

/** The first screen: the import through the file picker, models, chats. */
@RunWith(RobolectricTestRunner::class)
class HomeScreenTest {
    @get:Rule
    val folder = TemporaryFolder()

    private companion object {
        const val PAGE = "https://example.org/releases"
    }

    private val models get() = File(app.filesDir, "models")

    @Test
    fun `without a model it says how to make one`() {
        val home = openHome()
        waitUntil { home.shows(R.id.no_models) }
        assertFalse(home.shows(R.id.chats_heading))
    }

    @Test
    fun `a build that names a page for models opens it in the browser, and says so where there is none`() {
        assertFalse("a build without a page", openHome().view<View>(R.id.get_model).isShown)
        killProcess(releasePage = PAGE)
        val home = openHome()
        waitUntil { home.shows(R.id.get_model) }
        home.view<View>(R.id.get_model).performClick()
        val opened = shadowOf(home).nextStartedActivity
        assertEquals(Intent.ACTION_VIEW to PAGE, opened.action to opened.dataString)
        shadowOf(app).checkActivities(true)
        home.view<View>(R.id.get_model).performClick()
        assertEquals(home.getString(R.string.no_app_for_this), ShadowToast.getTextOfLatestToast())
    }

    @Test
    fun `a zip archive is picked, copied, checked and listed`() {
        val home = openHome()
        val picker = home.importZip(Fixture.zip(folder.newFile("my model.zip")))
        assertEquals(Intent.ACTION_OPEN_DOCUMENT, picker.action)
        waitUntil { home.rows(R.id.models) == 1 }
        val name = home.row(R.id.models).view<TextView>(R.id.name).text.toString()
        assertEquals("my-model", name)
        val facts = home.row(R.id.models).view<TextView>(R.id.facts).text.toString()
        assertTrue(facts, "float32" in facts && "State" in facts)
        assertFalse(home.shows(R.id.import_card))
        assertFalse(home.shows(R.id.no_models))
        val expected = Fixture.artifact.list().orEmpty().toSet() - "README.md" // the manifest doesn't name it
        assertEquals(expected, File(models, name).list().orEmpty().toSet())
    }

    @Test
    fun `a folder is picked as a tree and imported`() {
        val source = folder.newFolder("exported")
        Fixture.artifact.copyRecursively(source, overwrite = true)
        File(source, "notes.txt").writeText("not part of the artifact")
        val home = openHome()
        val picker = home.chooseSource(1, PickedFiles.folder(source))
        assertEquals(Intent.ACTION_OPEN_DOCUMENT_TREE, picker.action)
        waitUntil { home.rows(R.id.models) == 1 }
        assertEquals("exported", home.row(R.id.models).view<TextView>(R.id.name).text.toString())
        assertFalse(File(models, "exported/notes.txt").exists())
    }

    @Test
    fun `a flipped byte is refused with one message and nothing is kept`() {
        val zip =
            Fixture.zip(folder.newFile("damaged.zip")) { name, bytes ->
                if (name == "weights.data") bytes[bytes.size / 2] = (bytes[bytes.size / 2] + 1).toByte()
                bytes
            }
        val home = openHome()
        home.importZip(zip)
        waitUntil { home.shows(R.id.notice) }
        val message = home.textOf(R.id.notice)
        assertTrue(message, message.startsWith("A file of the model is missing or damaged"))
        assertTrue(message, "(weights.data differs" in message && "\n" !in message)
        assertEquals(emptyList<String>(), models.list().orEmpty().toList())
        assertTrue(home.shows(R.id.no_models))
    }

    @Test
    fun `a missing file, an entry outside and a file that is no archive are refused`() {
        val cases =
            listOf(
                Fixture.zip(folder.newFile("1.zip")) { name, bytes -> bytes.takeIf { name != "tokenizer.json" } },
                Fixture.zip(folder.newFile("2.zip"), rename = { "../$it" }),
                folder.newFile("3.zip").apply { writeText("no archive") },
            )
        val home = openHome()
        for ((zip, word) in cases.zip(listOf("missing", "outside", "zip archive"))) {
            home.importZip(zip)
            waitUntil { home.shows(R.id.notice) && word in home.textOf(R.id.notice) }
            assertEquals(emptyList<String>(), models.list().orEmpty().toList())
        }
    }

    @Test
    fun `stopping an import keeps nothing`() {
        val home = openHome()
        val zip = Fixture.zip(folder.newFile("big.zip"))
        home.chooseSource(0, PickedFiles.file(zip))
        home.view<View>(R.id.import_cancel).performClick()
        waitUntil { home.shows(R.id.notice) }
        assertEquals(home.getString(R.string.import_stopped), home.textOf(R.id.notice))
        assertEquals(emptyList<String>(), models.list().orEmpty().toList())
    }

    @Test
    fun `a model's row opens a new chat with it`() {
        Fixture.install()
        val home = openHome()
        waitUntil { home.rows(R.id.models) == 2 }
        home.row(R.id.models).performClick()
        assertEquals(ChatActivity::class.java.name, shadowOf(home).nextStartedActivity.component?.className)
    }

    @Test
    fun `deleting a model asks first`() {
        Fixture.install()
        val home = openHome()
        waitUntil { home.rows(R.id.models) == 2 }
        home.row(R.id.models, 1).view<View>(R.id.delete).performClick()
        latestDialog().getButton(AlertDialog.BUTTON_NEGATIVE).performClick()
        shadowOf(Looper.getMainLooper()).idle()
        assertTrue(File(models, Fixture.MODEL).exists())
        home.row(R.id.models, 1).view<View>(R.id.delete).performClick()
        latestDialog().getButton(AlertDialog.BUTTON_POSITIVE).performClick()
        waitUntil { home.rows(R.id.models) == 1 }
        assertFalse(File(models, Fixture.MODEL).exists())
    }

    @Test
    fun `deleting a model deletes the states of its chats, keeps their text, and says so later`() {
        Fixture.install()
        val chats = listOf(Fixture.MODEL, Fixture.ENDLESS).map { ChatScreen.start(it).apply { ask("Hello") } }
        chats.forEach { it.leave() }
        killProcess()
        val (gone, other) = chats.map { app.services.chats.sessionFile(it.id) }
        val unfinished = File(gone.parentFile, ".session.tmp").apply { writeText("half a state") }
        assertTrue(gone.exists() && other.exists())
        val home = openHome()
        waitUntil { home.rows(R.id.models) == 2 }
        home.row(R.id.models, 1).view<View>(R.id.delete).performClick()
        latestDialog().getButton(AlertDialog.BUTTON_POSITIVE).performClick()
        waitUntil { home.rows(R.id.models) == 1 && home.rows(R.id.chats) == 2 }
        assertFalse(gone.exists() || unfinished.exists())
        assertTrue(other.exists())
        assertEquals(2, checkNotNull(app.services.chats.find(chats[0].id)).turns.size)

        Fixture.artifact.copyRecursively(File(models, Fixture.MODEL))
        val again = ChatScreen.open(chats[0].id).waitUntilReady()
        val notice = again.state.notice as Notice.HistoryLost
        assertEquals(Problem(R.string.problem_state_deleted), notice.reason)
        again.leave()
    }

    @Test
    fun `a damaged model stays in the list with its problem and can't be opened`() {
        Fixture.install()
        File(models, "${Fixture.MODEL}/weights.data").appendText("x")
        val home = openHome()
        waitUntil { home.rows(R.id.models) == 2 }
        val row = home.row(R.id.models, 1)
        assertTrue("bytes, the manifest says" in row.view<TextView>(R.id.facts).text)
        assertFalse(row.isEnabled)
        assertNull(shadowOf(home).nextStartedActivity)
    }
}

/** Picks a zip archive as a person does; gives the intent that opened the picker. */
internal fun HomeActivity.importZip(zip: File): Intent = chooseSource(0, PickedFiles.file(zip))

internal fun HomeActivity.chooseSource(
    which: Int,
    uri: android.net.Uri,
): Intent {
    view<View>(R.id.import_model).performClick()
    shadowOf(latestDialog()).clickOnItem(which)
    return pick(uri)
}

internal fun latestDialog(): AlertDialog = ShadowDialog.getLatestDialog() as AlertDialog

internal fun Activity.rows(container: Int): Int = view<LinearLayout>(container).childCount

internal fun Activity.row(
    container: Int,
    index: Int = 0,
): View = view<ViewGroup>(container).getChildAt(index)
