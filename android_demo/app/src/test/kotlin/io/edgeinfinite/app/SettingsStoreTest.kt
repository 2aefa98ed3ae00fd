package io.edgeinfinite.app

import io.edgeinfinite.app.data.AppSettings
import io.edgeinfinite.app.data.SettingsStore
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Runnable
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import java.io.File
import kotlin.coroutines.CoroutineContext

/** Settings hold at once, and the thread that changes them doesn't wait for the storage. */
class SettingsStoreTest {
    @get:Rule
    val folder = TemporaryFolder()

    private class Later : CoroutineDispatcher() {
        val waiting = ArrayDeque<Runnable>()

        override fun dispatch(
            context: CoroutineContext,
            block: Runnable,
        ) {
            waiting += block
        }
    }

    @Test
    fun `a change holds at once and is written by another thread, the newest last`() {
        val file = File(folder.root, "settings.json")
        val later = Later()
        val store = SettingsStore(file, later)
        for (tokens in listOf(100, 200, 300)) store.update { it.copy(maxNewTokens = tokens) }
        assertEquals(300, store.settings.value.maxNewTokens)
        assertFalse(file.exists())
        while (later.waiting.isNotEmpty()) later.waiting.removeFirst().run()
        assertEquals(AppSettings(maxNewTokens = 300), SettingsStore(file, later).settings.value)
    }

    @Test
    fun `what is written soon survives the process`() {
        val file = File(folder.root, "settings.json")
        SettingsStore(file).update { it.copy(threads = 3) }
        waitFor { file.exists() && file.readText().endsWith("}") }
        assertEquals(3, SettingsStore(file).settings.value.threads)
    }

    private fun waitFor(holds: () -> Boolean) {
        val end = System.nanoTime() + 60_000_000_000L
        while (!holds()) check(System.nanoTime() < end).also { Thread.sleep(2) }
    }
}
