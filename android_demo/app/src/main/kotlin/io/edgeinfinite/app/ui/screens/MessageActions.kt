package io.edgeinfinite.app.ui.screens

import android.app.Activity
import android.app.AlertDialog
import android.content.ActivityNotFoundException
import android.content.ClipData
import android.content.ClipboardManager
import android.content.Intent
import android.os.Build
import android.widget.TextView
import android.widget.Toast
import io.edgeinfinite.app.R
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.ChatItem
import io.edgeinfinite.app.ui.viewmodel.ChatUiState
import io.edgeinfinite.app.ui.viewmodel.ChatViewModel
import io.edgeinfinite.core.Library

/** What can be done with one message, in a list that a long press opens. */
internal class MessageActions(
    private val activity: Activity,
    private val viewModel: ChatViewModel,
) {
    /** Opens the list of the message at this place; files have none. */
    fun open(position: Int) {
        val state = viewModel.state.value
        val item = state.items.getOrNull(position) ?: return
        val text =
            when (item) {
                is ChatItem.User -> item.text
                is ChatItem.Answer -> item.text
                is ChatItem.File -> return
            }
        val isNewest = position >= state.items.size - 2
        val actions =
            listOfNotNull(
                Pair(R.string.copy) { copy(text) },
                Pair(R.string.select_text) { select(text) },
                Pair(R.string.share) { activity.share(text) },
                Pair(R.string.report_answer) { activity.share(report(state, position, text)) }
                    .takeIf { item is ChatItem.Answer },
                Pair(R.string.edit_question) { viewModel.edit() }
                    .takeIf { isNewest && item is ChatItem.User && state.canEdit },
                Pair(R.string.try_again) { viewModel.tryAgain() }
                    .takeIf { isNewest && item is ChatItem.Answer && state.canTryAgain },
            )
        val names = actions.map { activity.getString(it.first) }.toTypedArray()
        AlertDialog
            .Builder(activity)
            .setItems(names) { _, which -> actions[which].second() }
            .show()
    }

    /** What a store asks of apps that generate: the person says why, and chooses who hears it. */
    private fun report(
        state: ChatUiState,
        position: Int,
        answer: String,
    ): String {
        val question = state.items.take(position).lastOrNull { it is ChatItem.User } as ChatItem.User?
        return activity.getString(
            R.string.report_text,
            state.model,
            Library.version,
            question?.text.orEmpty(),
            answer,
        )
    }

    private fun copy(text: String) {
        val clipboard = activity.getSystemService(ClipboardManager::class.java) ?: return
        clipboard.setPrimaryClip(ClipData.newPlainText(activity.getString(R.string.app_name), text))
        // Newer systems show it themselves.
        if (Build.VERSION.SDK_INT < Build.VERSION_CODES.TIRAMISU) activity.say(R.string.copied)
    }

    private fun select(text: String) {
        val view = activity.layoutInflater.inflate(R.layout.dialog_text, null)
        view.view<TextView>(R.id.text).text = text
        AlertDialog
            .Builder(activity)
            .setView(view)
            .setPositiveButton(R.string.close, null)
            .show()
    }
}

/** Gives a text to another app, which the person chooses. */
internal fun Activity.share(text: String) {
    val intent = Intent(Intent.ACTION_SEND).setType("text/plain").putExtra(Intent.EXTRA_TEXT, text)
    startOrSay(Intent.createChooser(intent, null))
}

/** Starts another app's screen; says so where the device has none for it. */
internal fun Activity.startOrSay(
    intent: Intent,
    request: Int? = null,
) {
    try {
        @Suppress("DEPRECATION")
        if (request == null) startActivity(intent) else startActivityForResult(intent, request)
    } catch (_: ActivityNotFoundException) {
        say(R.string.no_app_for_this)
    }
}

/** A line that goes away by itself. */
internal fun Activity.say(text: Int) = Toast.makeText(this, text, Toast.LENGTH_SHORT).show()
