package io.edgeinfinite.app.ui.screens

import android.app.Activity
import android.view.View
import android.widget.LinearLayout
import android.widget.ProgressBar
import android.widget.TextView
import io.edgeinfinite.app.R
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.app.ui.components.fill
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.viewmodel.Phase
import io.edgeinfinite.app.ui.viewmodel.RunningChat

/**
 * A list of chats, each with what it is doing.
 *
 * @param onDelete null where chats can't be deleted.
 */
internal class ChatRows(
    private val activity: Activity,
    private val rows: LinearLayout,
    private val onOpen: (String) -> Unit,
    private val onDelete: ((String) -> Unit)? = null,
) {
    /** @param selected the chat that is open beside the list, null for none. */
    fun show(
        chats: List<ChatRecord>,
        running: RunningChat?,
        selected: String? = null,
    ) = rows.fill(chats.size, R.layout.row_chat) { row, index ->
        val chat = chats[index]
        bind(row, chat, running?.phase.takeIf { running?.id == chat.id })
        row.isActivated = chat.id == selected
    }

    private fun bind(
        row: View,
        chat: ChatRecord,
        phase: Phase?,
    ) {
        val title = chat.title.ifEmpty { activity.getString(R.string.chat_untitled) }
        row.view<TextView>(R.id.name).text = title
        row.view<TextView>(R.id.facts).text = factsOf(chat, phase)
        row.view<ProgressBar>(R.id.progress).run {
            showIf(phase is Phase.Reading)
            if (phase is Phase.Reading) progress = (phase.read * max / maxOf(1, phase.total)).toInt()
        }
        row.setOnClickListener { onOpen(chat.id) }
        row.view<View>(R.id.delete).run {
            showIf(onDelete != null)
            contentDescription = activity.getString(R.string.delete_chat, title)
            setOnClickListener { onDelete?.invoke(chat.id) }
        }
    }

    private fun factsOf(
        chat: ChatRecord,
        phase: Phase?,
    ): String =
        when (phase) {
            is Phase.Reading ->
                activity.getString(R.string.chat_reading, Format.count(phase.read), Format.count(phase.total))
            Phase.Answering -> activity.getString(R.string.chat_answering)
            else -> activity.getString(R.string.chat_facts, chat.model, Format.count(chat.tokensRead))
        }
}
