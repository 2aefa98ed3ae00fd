package io.edgeinfinite.app

import android.content.Intent
import android.view.View
import android.widget.Button
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.screens.BenchmarkActivity
import io.edgeinfinite.app.ui.viewmodel.BenchmarkViewModel
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.double
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.Shadows.shadowOf
import org.robolectric.shadows.ShadowLog

/** The benchmark's screen, with onnxruntime on the tiny artifact. */
@RunWith(RobolectricTestRunner::class)
class BenchmarkTest {
    private fun open() = Robolectric.buildActivity(BenchmarkActivity::class.java).setup().get()

    @Test
    fun `a measurement is one line of JSON that is shared`() {
        Fixture.install()
        app.services.settings.update { it.copy(threads = 1) }
        val chat = ChatScreen.start(Fixture.ENDLESS)
        chat.ask("Hello")
        val screen = open()
        waitUntil { screen.view<Button>(R.id.run).isEnabled }
        screen.view<View>(R.id.run).performClick()
        shadowOf(latestDialog()).clickOnItem(1)
        waitUntil { screen.view<View>(R.id.root).keepScreenOn }
        waitUntil { screen.shows(R.id.result) }
        screen.view<View>(R.id.share).performClick()
        val chooser = shadowOf(screen).nextStartedActivity

        @Suppress("DEPRECATION")
        val line = chooser.getParcelableExtra<Intent>(Intent.EXTRA_INTENT)?.getStringExtra(Intent.EXTRA_TEXT).orEmpty()
        assertFalse("\n" in line)
        assertEquals("for adb logcat", line, ShadowLog.getLogsForTag(BenchmarkViewModel.LOG_TAG).single().msg)
        val row = Json.parseToJsonElement(line).jsonObject
        assertEquals(Fixture.MODEL, row.getValue("model").jsonPrimitive.content)
        assertEquals(1_024L, row.getValue("prompt_tokens").jsonPrimitive.long)
        assertEquals("the answer's end is forbidden", 64L, row.getValue("new_tokens").jsonPrimitive.long)
        assertEquals(1L, row.getValue("threads").jsonPrimitive.long)
        for (name in listOf("first_token_s", "read_tokens_per_s", "write_tokens_per_s", "slowest_token_s")) {
            assertTrue(name, row.getValue(name).jsonPrimitive.double > 0)
        }
        assertTrue(row.getValue("peak_bytes").jsonPrimitive.long > 10_000_000)
        assertEquals(2, row.getValue("thermal").jsonArray.size)
        for (name in listOf("device", "soc", "android", "abi", "battery", "charging", "state_bytes", "weights")) {
            assertTrue(name, name in row)
        }
        screen.finish()
        val again = ChatScreen.open(chat.id).waitUntilReady()
        assertEquals("the chat that was open before goes on", 2, again.state.items.size)
        again.leave()
    }

    @Test
    fun `a measurement that is stopped has no result, and the model can be used at once`() {
        Fixture.install()
        val viewModel: BenchmarkViewModel = app.services.benchmark
        viewModel.run(Fixture.MODEL)
        viewModel.stop()
        waitUntil { !viewModel.state.value.isRunning && !app.services.oneAtATime.isLocked }
        assertNull(viewModel.state.value.row)
        val chat = ChatScreen.start()
        chat.ask("Hello")
        chat.leave()
    }

    @Test
    fun `without a model there is nothing to measure, and a missing one is told`() {
        val screen = open()
        waitUntil { screen.shows(R.id.benchmark_problem) }
        assertEquals("Import a model first.", screen.textOf(R.id.benchmark_problem))
        assertFalse(screen.view<Button>(R.id.run).isEnabled)
        app.services.benchmark.run("gone")
        waitUntil { !app.services.benchmark.state.value.isRunning }
        assertTrue(app.services.benchmark.state.value.problem != null)
    }
}
