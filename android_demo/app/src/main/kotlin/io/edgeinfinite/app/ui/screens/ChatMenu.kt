package io.edgeinfinite.app.ui.screens

import android.app.Activity
import android.app.AlertDialog
import android.content.Intent
import android.view.Menu
import android.view.MenuItem
import android.view.View
import android.widget.EditText
import android.widget.TextView
import io.edgeinfinite.app.R
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.ChatItem
import io.edgeinfinite.app.ui.viewmodel.ChatUiState
import io.edgeinfinite.app.ui.viewmodel.ChatViewModel
import io.edgeinfinite.app.ui.viewmodel.Phase
import io.edgeinfinite.app.ui.viewmodel.withoutSuffix

/** What can be done with a whole chat, in the toolbar's menu. */
internal class ChatMenu(
    private val activity: Activity,
    private val viewModel: ChatViewModel,
) {
    /** Enables what can be done now. */
    fun prepare(menu: Menu) {
        val state = viewModel.state.value
        val enabled = enabledIn(state)
        for (id in IDS) menu.findItem(id)?.isEnabled = id in enabled
    }

    /** What [prepare] depends on. */
    fun enabledIn(state: ChatUiState): Set<Int> =
        IDS.filterTo(HashSet()) { id ->
            when (id) {
                R.id.take_back -> state.canTakeBack
                R.id.try_again -> state.canTryAgain
                R.id.edit_question -> state.canEdit
                R.id.system -> state.phase == Phase.Ready
                else -> state.phase == Phase.Ready && state.items.isNotEmpty()
            }
        }

    /** @return whether the item is one of these. */
    fun select(item: MenuItem): Boolean {
        when (item.itemId) {
            R.id.take_back -> viewModel.takeBack()
            R.id.try_again -> viewModel.tryAgain()
            R.id.edit_question -> viewModel.edit()
            R.id.fork -> viewModel.fork()
            R.id.system -> askForSystem()
            R.id.share_chat -> activity.share(transcript(viewModel.state.value.items))
            R.id.save_reading -> pickTarget()
            else -> return false
        }
        return true
    }

    private fun askForSystem() {
        val state = viewModel.state.value
        val view = activity.layoutInflater.inflate(R.layout.dialog_system, null)
        val field = view.view<EditText>(R.id.system_text)
        field.setText(state.system)
        field.isEnabled = state.canSetSystem
        field.alpha = alphaOf(field.isEnabled)
        view.view<TextView>(R.id.system_note)
            .setText(if (state.canSetSystem) R.string.system_note else R.string.system_is_read)
        AlertDialog
            .Builder(activity)
            .setTitle(R.string.system_title)
            .setView(view)
            .setNegativeButton(R.string.cancel, null)
            .setPositiveButton(R.string.save) { _, _ -> viewModel.setSystem(field.text.toString()) }
            .show()
            .getButton(AlertDialog.BUTTON_POSITIVE)
            .visibility = if (state.canSetSystem) View.VISIBLE else View.GONE
    }

    private fun pickTarget() {
        val state = viewModel.state.value
        val file = state.items.filterIsInstance<ChatItem.File>().firstOrNull()
        val name = file?.name?.let(::withoutSuffix) ?: state.model
        val intent =
            Intent(Intent.ACTION_CREATE_DOCUMENT)
                .addCategory(Intent.CATEGORY_OPENABLE)
                .setType("application/octet-stream")
                .putExtra(Intent.EXTRA_TITLE, "$name$EXTENSION")
        activity.startOrSay(intent, SAVE_READING)
    }

    /** The chat as Markdown. */
    private fun transcript(items: List<ChatItem>): String =
        items.joinToString("\n\n") { item ->
            when (item) {
                is ChatItem.User -> "**${activity.getString(R.string.transcript_you)}** ${item.text}"
                is ChatItem.Answer -> item.text
                is ChatItem.File -> "**${activity.getString(R.string.document_read, item.name)}**"
            }
        }

    companion object {
        /** Request: where a reading is to be saved. */
        const val SAVE_READING = 4
        private const val EXTENSION = ".edgeinfinite"
        private val IDS =
            listOf(
                R.id.take_back,
                R.id.try_again,
                R.id.edit_question,
                R.id.fork,
                R.id.system,
                R.id.share_chat,
                R.id.save_reading,
            )
    }
}
