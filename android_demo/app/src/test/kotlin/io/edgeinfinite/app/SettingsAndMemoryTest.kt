package io.edgeinfinite.app

import android.content.Intent
import android.view.View
import android.widget.EditText
import android.widget.RadioButton
import android.widget.SeekBar
import android.widget.Switch
import io.edgeinfinite.app.ui.components.MemoryChart
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.screens.EXTRA_CHAT
import io.edgeinfinite.app.ui.screens.EXTRA_MODEL
import io.edgeinfinite.app.ui.screens.MemoryActivity
import io.edgeinfinite.app.ui.screens.SettingsActivity
import io.edgeinfinite.app.ui.viewmodel.NpuProblem
import io.edgeinfinite.app.ui.viewmodel.SettingsViewModel
import io.edgeinfinite.core.DEFAULT_SAMPLING
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Assume.assumeTrue
import org.junit.Test
import org.robolectric.Robolectric
import java.io.File

/** The settings and the memory view. */
class SettingsAndMemoryTest : AppTest() {
    @Test
    fun `the NPU is disabled with the reason of the artifact at hand`() {
        val settings = openSettings()
        waitUntil { "exported for the CPU" in settings.textOf(R.id.npu_reason) }
        assertFalse(settings.view<View>(R.id.runtime_npu).isEnabled)
        assertTrue(settings.view<RadioButton>(R.id.runtime_cpu).isChecked)
    }

    @Test
    fun `the NPU can be chosen where artifact, chip and runtime have it, and each reason is named`() {
        val npu = File(checkNotNull(System.getProperty("edgeinfinite.fixtures")), "sessions/npu-reencode/artifact")
        assumeTrue("the package onnxruntime-qnn isn't installed", npu.isDirectory)
        npu.copyRecursively(File(app.filesDir, "models/npu"))
        val stored = runBlocking { app.services.importer.list() }.first { it.folder.name == "npu" }
        assertNull(SettingsViewModel.npuProblemOf(stored, "SM8650", hasProvider = true))
        assertEquals(NpuProblem.OtherChip("npu", "sm8650"), SettingsViewModel.npuProblemOf(stored, "SM8550", true))
        assertEquals(NpuProblem.NoProvider("npu", "sm8650"), SettingsViewModel.npuProblemOf(stored, "SM8650", false))
        assertEquals(NpuProblem.NoModel, SettingsViewModel.npuProblemOf(null, "SM8650", true))

        val settings = openSettings("npu")
        waitUntil { "no provider" in settings.textOf(R.id.npu_reason) }
        assertFalse(settings.view<View>(R.id.runtime_npu).isEnabled)
    }

    @Test
    fun `a model that the NPU refuses runs on the CPU, and the settings say why`() {
        app.services.settings.update { it.copy(npu = true, maxNewTokens = 4) }
        val chat = ChatScreen.start(Fixture.MODEL)
        chat.ask("Hello")
        assertEquals("${Fixture.MODEL} was exported for the CPU", app.services.models.npuProblem)
        chat.leave()
    }

    @Test
    fun `settings survive the process`() {
        app.services.settingsScreen.run {
            setTemperature(14)
            setTopP(18)
            setSeed(7)
            setThreads(1)
            setNpu(true)
            setLongest(128)
        }
        waitUntil { ":128" in File(app.filesDir, "settings.json").readText() } // written by another thread
        killProcess()
        val settings = openSettings()
        waitUntil { settings.textOf(R.id.temperature_value) == "0.70" }
        assertEquals("0.90", settings.textOf(R.id.top_p_value))
        assertEquals("1", settings.textOf(R.id.threads_value))
        assertEquals("128 tokens", settings.textOf(R.id.longest_value))
        assertEquals("7", settings.view<EditText>(R.id.seed).text.toString())
    }

    @Test
    fun `top-p has no effect on greedy answers and is disabled with the reason`() {
        val settings = openSettings()
        waitUntil { !settings.view<SeekBar>(R.id.top_p).isEnabled }
        assertEquals(settings.getString(R.string.settings_top_p_off), settings.textOf(R.id.top_p_note))
        app.services.settingsScreen.setTemperature(10)
        waitUntil { settings.view<SeekBar>(R.id.top_p).isEnabled }
    }

    @Test
    fun `until a person chooses a model samples as its authors recommend, or with values that read well`() {
        File(app.filesDir, "settings.json").delete()
        killProcess()
        val settings = openSettings()
        waitUntil { settings.textOf(R.id.temperature_value) == "0.30" }
        assertEquals("0.90", settings.textOf(R.id.top_p_value))
        assertNull(app.services.settings.settings.value.sampling)
        app.services.settingsScreen.setTopP(10)
        val chosen = DEFAULT_SAMPLING.copy(topP = 0.5)
        assertEquals(1.1, chosen.repetitionPenalty, 0.0)
        assertEquals(chosen, app.services.settings.settings.value.sampling)
    }

    @Test
    fun `a seed that is no number is not taken`() {
        val settings = openSettings()
        settings.view<Switch>(R.id.seed_fixed).isChecked = true
        waitUntil { settings.shows(R.id.seed) }
        val field = settings.view<EditText>(R.id.seed)
        field.setText("12")
        assertEquals(12L, app.services.settings.settings.value.sampling?.seed)
        field.setText("")
        assertEquals(settings.getString(R.string.settings_seed_bad), settings.textOf(R.id.seed_note))
        assertEquals(12L, app.services.settings.settings.value.sampling?.seed)
    }

    @Test
    fun `a damaged settings file reads as the defaults`() {
        File(app.filesDir, "settings.json").writeText("{\"maxNewTokens\": \"many\"")
        killProcess()
        assertEquals(256, app.services.settings.settings.value.maxNewTokens)
    }

    @Test
    fun `the memory view shows tokens read going up and a state that stays`() {
        app.services.settings.update { it.copy(maxNewTokens = 16) }
        val chat = ChatScreen.start()
        val state = Format.bytes(checkNotNull(chat.state.session).stateBytes)
        chat.attach(book(TEXT))
        waitUntil { chat.state.tokensRead > TEXT }
        chat.waitUntilReady()
        chat.ask("What was it?")
        val intent = MemoryActivity::class.java
        val memory =
            Robolectric
                .buildActivity(intent, chat.activity.intent.putExtra(EXTRA_CHAT, chat.id))
                .setup()
                .get()
        val tile = { id: Int -> memory.view<View>(id).contentDescription.toString() }
        waitUntil { Format.count(chat.state.tokensRead) in tile(R.id.tile_read) }
        assertTrue(tile(R.id.tile_state), state in tile(R.id.tile_state))
        assertTrue(tile(R.id.tile_app), "\\d [MG]B".toRegex() in tile(R.id.tile_app))
        assertTrue("tok/s" in memory.view<View>(R.id.line_decode).contentDescription)
        val chart = memory.view<MemoryChart>(R.id.chart).contentDescription
        assertTrue("$chart", "state always $state" in chart)
        assertTrue(chat.state.trace.map { it.stateBytes }.distinct().size == 1)
        assertTrue("compressive memory" in memory.textOf(R.id.cache_note))
        memory.finish()
        chat.leave()
    }

    @Test
    fun `where the app's memory isn't known no place shows a figure of it`() {
        killProcess(appBytes = { null })
        app.services.settings.update { it.copy(maxNewTokens = 8) }
        val chat = ChatScreen.start()
        chat.ask("Hello")
        chat.ask("Again")
        waitUntil { chat.activity.textOf(R.id.strip_state).any(Char::isDigit) }
        assertFalse(chat.activity.shows(R.id.strip_app_part))
        assertFalse("app" in chat.activity.view<View>(R.id.strip).contentDescription)
        val intent = chat.activity.intent.putExtra(EXTRA_CHAT, chat.id)
        val memory = Robolectric.buildActivity(MemoryActivity::class.java, intent).setup().get()
        waitUntil { "state always" in memory.view<View>(R.id.chart).contentDescription }
        assertEquals("Chart over tokens read: state always", memory.view<View>(R.id.chart).contentDescription.take(36))
        assertFalse(memory.view<View>(R.id.tile_app).contentDescription.any(Char::isDigit))
        memory.finish()
        chat.leave()
    }

    private fun openSettings(model: String? = null): SettingsActivity {
        val intent = Intent(app, SettingsActivity::class.java).putExtra(EXTRA_MODEL, model)
        return Robolectric.buildActivity(SettingsActivity::class.java, intent).setup().get()
    }

    private companion object {
        const val TEXT = 3_000
    }
}
