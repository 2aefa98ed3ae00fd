package io.edgeinfinite.app

import android.app.Activity
import android.content.Intent
import android.net.Uri
import android.os.Bundle
import android.view.View
import android.widget.EditText
import android.widget.TextView
import io.edgeinfinite.app.data.ProcessMemory
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.screens.ChatActivity
import io.edgeinfinite.app.ui.screens.HomeActivity
import io.edgeinfinite.app.ui.screens.chatIntent
import io.edgeinfinite.app.ui.viewmodel.ChatItem
import io.edgeinfinite.app.ui.viewmodel.ChatUiState
import io.edgeinfinite.app.ui.viewmodel.ChatViewModel
import io.edgeinfinite.app.ui.viewmodel.Phase
import org.robolectric.Robolectric
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.android.controller.ActivityController

/** The app's application object. */
internal val app: EdgeInfiniteApplication
    get() = RuntimeEnvironment.getApplication() as EdgeInfiniteApplication

/** The text of a view. */
internal fun Activity.textOf(id: Int): String = view<TextView>(id).text.toString()

/** Whether a view is shown. */
internal fun Activity.shows(id: Int): Boolean = view<View>(id).isShown

/** Answers the file picker that the screen opened last. */
internal fun Activity.pick(uri: Uri): Intent {
    val started = checkNotNull(shadowOf(this).nextStartedActivityForResult) { "no file picker was opened" }
    shadowOf(this).receiveResult(started.intent, Activity.RESULT_OK, Intent().setData(uri))
    return started.intent
}

/** The first screen, in front. */
internal fun openHome(): HomeActivity = Robolectric.buildActivity(HomeActivity::class.java).setup().get()

/**
 * Forgets everything that isn't on disk, as the system does when it kills the process.
 *
 * @param appBytes the memory that the next process is told to use.
 * @param releasePage the page that the next process' build names.
 */
internal fun killProcess(
    appBytes: () -> Long? = ProcessMemory::pss,
    releasePage: String = "",
) {
    val field = EdgeInfiniteApplication::class.java.getDeclaredField("services\$delegate")
    field.isAccessible = true
    field.set(app, lazy { AppServices(app, appBytes, releasePage) })
}

/** A chat's screen, and what a person does on it. */
internal class ChatScreen(
    val controller: ActivityController<ChatActivity>,
    val id: String,
) {
    val activity: ChatActivity get() = controller.get()
    private val viewModel: ChatViewModel get() = checkNotNull(app.services.chat(id))
    val state: ChatUiState get() = viewModel.state.value
    val answers: List<ChatItem.Answer> get() = state.items.filterIsInstance<ChatItem.Answer>()

    fun waitUntilReady(): ChatScreen {
        waitUntil(what = "the chat's being ready") {
            check(state.phase !is Phase.Failed) { state.phase }
            state.phase == Phase.Ready
        }
        return this
    }

    fun send(text: String) {
        activity.view<EditText>(R.id.message).setText(text)
        activity.view<View>(R.id.send).performClick()
    }

    /** Asks and waits for the whole answer. */
    fun ask(text: String): ChatItem.Answer {
        val before = answers.size
        send(text)
        waitUntil(what = "an answer") { answers.size > before && state.phase == Phase.Ready }
        return answers.last()
    }

    fun attach(uri: Uri) {
        activity.view<View>(R.id.attach).performClick()
        activity.pick(uri)
    }

    /** Leaves the screen, as with the back key. */
    fun leave() {
        activity.finish()
        controller.pause().stop().destroy()
        waitUntil { !app.services.oneAtATime.isLocked }
    }

    companion object {
        /** A new chat with a model of the fixture. */
        fun start(model: String = Fixture.MODEL): ChatScreen =
            open(app.services.home.newChat(model).id).waitUntilReady()

        /** A chat that is there already. */
        fun open(
            id: String,
            saved: Bundle? = null,
        ): ChatScreen {
            val controller = Robolectric.buildActivity(ChatActivity::class.java, app.chatIntent(id))
            return ChatScreen(if (saved == null) controller.setup() else controller.setup(saved), id)
        }
    }
}
