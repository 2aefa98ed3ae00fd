package io.edgeinfinite.app

import android.view.View
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.screens.EXTRA_CHAT
import io.edgeinfinite.app.ui.screens.MemoryActivity
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.ParameterizedRobolectricTestRunner
import org.robolectric.ParameterizedRobolectricTestRunner.Parameters
import org.robolectric.Robolectric
import java.io.File

/** Every kind of artifact that `edgeinfinite export --backend onnx` makes runs in the app. */
@RunWith(ParameterizedRobolectricTestRunner::class)
class EveryArtifactTest(
    private val name: String,
) {
    @get:Rule
    val folder = TemporaryFolder()

    @Test
    fun `a long text is read in a state of constant size, and a question is answered`() {
        File(sessions, "$name/artifact").copyRecursively(File(app.filesDir, "models/$name"))
        app.services.settings.update { it.copy(maxNewTokens = 12) }
        val chat = ChatScreen.start(name)
        val before = checkNotNull(chat.state.session)
        chat.attach(PickedFiles.file(folder.newFile("book.txt").apply { writeText(Fixture.longText(LONG)) }))
        waitUntil { chat.state.tokensRead > LONG }
        chat.waitUntilReady()
        val read = chat.state.tokensRead
        chat.ask("What was buried?")
        assertTrue(chat.state.tokensRead > read + "What was buried?".length)
        assertEquals(before.stateBytes, chat.state.session?.stateBytes)
        checkMemoryView(chat)
        chat.leave()
    }

    private fun checkMemoryView(chat: ChatScreen) {
        val geometry = checkNotNull(chat.state.geometry)
        val session = checkNotNull(chat.state.session)
        assertEquals(geometry.mostSlots, session.recalledTokens)
        val intent = chat.activity.intent.putExtra(EXTRA_CHAT, chat.id)
        val memory = Robolectric.buildActivity(MemoryActivity::class.java, intent).setup().get()
        waitUntil { memory.textOf(R.id.cache_legend).isNotEmpty() }
        val legend = memory.textOf(R.id.cache_legend).replace('\u00A0', ' ')
        assertEquals(geometry.mostSlots > 0, "Recalled ${geometry.mostSlots}" in legend)
        val counted = "\\d+".toRegex().findAll(legend).sumOf { it.value.toInt() }
        assertEquals(geometry.capacity, counted)
        checkWords(memory, recalls = geometry.mostSlots > 0, folds = chat.state.readsMemory)
        memory.finish()
    }

    /** What the screen says of older text is what this kind of artifact does with it, in all places. */
    private fun checkWords(
        memory: MemoryActivity,
        recalls: Boolean,
        folds: Boolean,
    ) {
        val tile = memory.view<View>(R.id.tile_folded).contentDescription.toString()
        val note = memory.textOf(R.id.cache_note)
        val kind = if (recalls) {
            "sifted"
        } else if (folds) {
            "folded"
        } else {
            "dropped"
        }
        assertTrue(tile, "Segments $kind: " in tile)
        assertEquals(note, recalls, "every head keeps the" in note)
        assertEquals(note, folds, "in the compressive memory" in note)
        assertEquals(note, !recalls && !folds, "neither recall slots nor a memory gate" in note)
    }

    companion object {
        private const val LONG = 600
        private val sessions = File(checkNotNull(System.getProperty("edgeinfinite.fixtures")), "sessions")

        @JvmStatic
        @Parameters(name = "{0}")
        fun artifacts(): List<Array<Any>> =
            sessions
                .list()
                .orEmpty()
                .sorted()
                .also { check(it.size >= 6) { "fixtures are missing: $it" } }
                .map { arrayOf(it) }
    }
}
