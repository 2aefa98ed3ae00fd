package io.edgeinfinite.app

import android.app.Activity
import android.graphics.Bitmap
import android.graphics.Canvas
import android.graphics.Insets
import android.view.View
import android.view.ViewGroup
import android.view.WindowInsets
import android.widget.EditText
import android.widget.TextView
import android.widget.Toolbar
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.screens.BenchmarkActivity
import io.edgeinfinite.app.ui.screens.ChatActivity
import io.edgeinfinite.app.ui.screens.EXTRA_CHAT
import io.edgeinfinite.app.ui.screens.HomeActivity
import io.edgeinfinite.app.ui.screens.MemoryActivity
import io.edgeinfinite.app.ui.screens.SettingsActivity
import io.edgeinfinite.core.SamplingOptions
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.android.controller.ActivityController
import java.io.File

/**
 * Draws every screen in two sizes, light and dark, with large letters, in landscape with a keyboard, from
 * right to left and in the other language, and looks at what can be checked without eyes.
 *
 * The tests draw the tiny model; the pictures in the README are of a real one, see
 * `ci/build.sh screenshots`: the properties `edgeinfinite.screenshots.model`, `.text` and `.question`.
 */
@RunWith(RobolectricTestRunner::class)
class ScreenshotTest {
    @get:Rule
    val folder = TemporaryFolder()

    @Test
    fun `every screen is drawn, nothing is covered, and everything that can be touched is large and named`() {
        // A PC's figure would say nothing about a phone.
        killProcess(appBytes = { null })
        // Greedy: the same pictures every time.
        app.services.settings.update { it.copy(maxNewTokens = ANSWER, sampling = SamplingOptions()) }
        val chat = ChatScreen.open(app.services.home.newChat(model.name).id).waitUntilReady()
        forEachLook { look -> drawAgain(look, "new-chat", ChatScreen.open(chat.id).controller) }
        val book = folder.newFile(bookName).apply { writeText(text()) }
        chat.attach(PickedFiles.file(book))
        waitUntil(seconds = SLOW) { chat.state.tokensRead > text().length / READING_SHARE }
        forEachLook { look -> drawAgain(look, "reading", ChatScreen.open(chat.id).controller) }
        waitUntil(seconds = SLOW) { !chat.state.canStop }
        for (question in questions) {
            chat.send(question)
            waitUntil(seconds = SLOW) { chat.state.canStop }
            waitUntil(seconds = SLOW) { !chat.state.canStop }
        }
        forEachLook { look ->
            drawAgain(look, "chat", ChatScreen.open(chat.id).controller)
            draw(look, "memory", MemoryActivity::class.java, chat.id)
            draw(look, "settings", SettingsActivity::class.java, chat.id)
            draw(look, "home", HomeActivity::class.java, chat.id)
        }
        forEachLook { draw(it, "benchmark", BenchmarkActivity::class.java, chat.id) }
        drawImport()
        chat.leave()
        assertEquals("", problems.joinToString("\n"))
    }

    /** What is wrong on any screen. */
    private val problems = LinkedHashSet<String>()

    private fun check(
        problem: String,
        isRight: Boolean,
    ) {
        if (!isRight) problems += problem
    }

    private fun drawImport() {
        val picked = PickedFiles.folder(File(folder.root, IMPORTED).also { model.copyRecursively(it) })
        for (look in LOOKS) {
            look.set()
            val home = Robolectric.buildActivity(HomeActivity::class.java).setup()
            home.get().chooseSource(1, picked)
            waitUntil {
                (app.services.home.state.value.importing?.copied ?: 0) > 0 && home.get().shows(R.id.import_card)
            }
            save(look, "import", home.get())
            home.get().view<View>(R.id.import_cancel).performClick()
            waitUntil(seconds = SLOW) { app.services.home.state.value.importing == null }
            File(app.filesDir, "models/$IMPORTED").deleteRecursively()
            home.pause().stop().destroy()
        }
    }

    private val model: File by lazy {
        val source = System.getProperty("edgeinfinite.screenshots.model")?.let(::File) ?: Fixture.artifact
        source.copyRecursively(File(app.filesDir, "models/${source.name}"))
        source
    }

    private val shown = System.getProperty("edgeinfinite.screenshots.text")?.let(::File)

    private val bookName = shown?.name ?: "dogs.txt"

    private fun text(): String = shown?.readText() ?: Fixture.longText(TEXT)

    /** One a line. */
    private val questions =
        (System.getProperty("edgeinfinite.screenshots.questions") ?: "Who is this text about?").lines()

    private fun forEachLook(action: (Look) -> Unit) = LOOKS.forEach(action)

    private fun draw(
        look: Look,
        name: String,
        type: Class<out Activity>,
        chat: String,
    ) {
        look.set()
        val intent = android.content.Intent().putExtra(EXTRA_CHAT, chat)
        val controller = Robolectric.buildActivity(type, intent).setup()
        waitUntil { !app.services.oneAtATime.isLocked || app.services.chat(chat)?.state?.value?.canStop == true }
        save(look, name, controller.get())
        controller.pause().stop().destroy()
    }

    private fun drawAgain(
        look: Look,
        name: String,
        old: ActivityController<*>,
    ) {
        look.set()
        old.recreate()
        save(look, name, old.get() as Activity)
        old.pause().stop().destroy()
    }

    /** Lays the screen out below a status bar, checks it, and writes the picture. */
    private fun save(
        look: Look,
        name: String,
        activity: Activity,
    ) {
        val root = activity.window.decorView
        val bar = (BAR_DP * activity.resources.displayMetrics.density).toInt()
        val insets =
            WindowInsets
                .Builder()
                .setInsets(WindowInsets.Type.statusBars(), Insets.of(0, bar, 0, 0))
                .setInsets(WindowInsets.Type.navigationBars(), Insets.of(0, 0, 0, bar))
                .build()
        val metrics = activity.resources.displayMetrics
        repeat(2) {
            org.robolectric.Shadows.shadowOf(android.os.Looper.getMainLooper()).idle()
            root.dispatchApplyWindowInsets(insets) // after those of the window itself
            val keyboard = look.keyboardOf(activity) - bar
            if (keyboard > 0) activity.view<View>(R.id.root).openKeyboard(keyboard)
            root.measure(exactly(metrics.widthPixels), exactly(metrics.heightPixels))
            root.layout(0, 0, metrics.widthPixels, metrics.heightPixels)
        }
        check("$name: the toolbar is under the status bar", topOf(activity.view<Toolbar>(R.id.toolbar)) >= bar)
        checkTouchable(root, "$name-${look.name}", metrics.density)
        checkText(root, "$name-${look.name}")
        if (activity is ChatActivity && look.keyboardDp > 0) checkTyping(activity, look)
        if (name !in look.pictures) return
        val bitmap = Bitmap.createBitmap(root.width, root.height, Bitmap.Config.ARGB_8888)
        root.draw(Canvas(bitmap))
        val target = File(System.getProperty("edgeinfinite.screenshots") ?: return, "$name-${look.name}.png")
        target.parentFile?.mkdirs()
        target.outputStream().use { bitmap.compress(Bitmap.CompressFormat.PNG, 100, it) }
        assertTrue("$target is empty", target.length() > MINIMUM_BYTES)
    }

    private fun exactly(pixels: Int) = View.MeasureSpec.makeMeasureSpec(pixels, View.MeasureSpec.EXACTLY)

    private fun topOf(view: View): Int = IntArray(2).also(view::getLocationInWindow)[1]

    private fun checkTouchable(
        view: View,
        name: String,
        density: Float,
    ) {
        if (view.visibility != View.VISIBLE) return
        if (view.isClickable && view.width > 0) {
            val described = "$name: ${view.javaClass.simpleName} ${view.contentDescription}"
            val isLarge = view.height >= TOUCH_DP * density - 1 && view.width >= TOUCH_DP * density - 1
            check("$described is ${view.width / density} x ${view.height / density} dp", isLarge)
            val label =
                view.contentDescription ?: (view as? TextView)?.let { it.text.ifEmpty { it.hint } }
            check("$described has no name", !label.isNullOrEmpty() || hasText(view))
        }
        if (view is ViewGroup) for (at in 0 until view.childCount) checkTouchable(view.getChildAt(at), name, density)
    }

    /** Robolectric's window makes room for its bars, and for no keyboard. */
    private fun View.openKeyboard(height: Int) {
        val keyboard = WindowInsets.Builder().setInsets(WindowInsets.Type.ime(), Insets.of(0, 0, 0, height)).build()
        dispatchApplyWindowInsets(keyboard)
    }

    /** No line of a text is cut off. */
    private fun checkText(
        view: View,
        name: String,
    ) {
        if (view.visibility != View.VISIBLE) return
        if (view is TextView && view.width > 0 && view !is EditText) {
            val room = view.height - view.compoundPaddingTop - view.compoundPaddingBottom
            val needed = view.layout?.height ?: 0
            check("$name: “${view.text}” needs $needed of $room pixels", needed <= room + 1)
        }
        if (view is ViewGroup) for (at in 0 until view.childCount) checkText(view.getChildAt(at), name)
    }

    /** Above the keyboard there is room for the message's field and for some of what was said. */
    private fun checkTyping(
        activity: Activity,
        look: Look,
    ) {
        val root = activity.window.decorView
        val field = activity.view<View>(R.id.message)
        val bottom = topOf(field) + field.height
        val padding = activity.view<View>(R.id.root).paddingBottom
        check("the field ends at $bottom, padded by $padding", bottom <= root.height - look.keyboardOf(activity))
        val density = activity.resources.displayMetrics.density
        check("the field is ${field.height} pixels high", field.height >= TOUCH_DP * density)
        val said = activity.view<View>(R.id.messages).height / density
        check("$said dp of the chat are left", said >= LEAST_DP)
    }

    private fun hasText(view: View): Boolean =
        (view is TextView && view.text.isNotEmpty()) ||
            (view is ViewGroup && (0 until view.childCount).any { hasText(view.getChildAt(it)) })

    private class Look(
        val name: String,
        val qualifiers: String,
        val fontScale: Float = 1f,
        val keyboardDp: Int = 0,
        val pictures: List<String> = emptyList(),
    ) {
        fun set() {
            RuntimeEnvironment.setQualifiers(qualifiers)
            RuntimeEnvironment.setFontScale(fontScale)
        }

        fun keyboardOf(activity: Activity): Int =
            if (activity is ChatActivity) (keyboardDp * activity.resources.displayMetrics.density).toInt() else 0
    }

    private companion object {
        const val IMPORTED = "another-model"
        const val TEXT = 4_000
        const val READING_SHARE = 10
        const val ANSWER = 48
        const val SLOW = 400
        const val BAR_DP = 24
        const val TOUCH_DP = 48
        const val LEAST_DP = 40
        const val MINIMUM_BYTES = 4_000
        val SCREENS = listOf("new-chat", "reading", "chat", "memory", "settings", "home", "benchmark", "import")
        val LOOKS =
            listOf(
                Look("phone", "w411dp-h891dp-port-notnight-xhdpi", pictures = SCREENS),
                Look("phone-dark", "w411dp-h891dp-port-night-xhdpi", pictures = SCREENS),
                Look("tablet", "w800dp-h1280dp-port-notnight-mdpi", pictures = SCREENS),
                Look("tablet-wide", "w1280dp-h800dp-land-notnight-mdpi", pictures = listOf("chat", "home")),
                Look("large", "w411dp-h891dp-port-notnight-mdpi", fontScale = 2f),
                Look("german", "de-w411dp-h891dp-port-notnight-mdpi"),
                Look("right-to-left", "ar-ldrtl-w411dp-h891dp-port-notnight-mdpi"),
                Look("landscape", "w891dp-h411dp-land-notnight-mdpi", keyboardDp = 200),
            )
    }
}
