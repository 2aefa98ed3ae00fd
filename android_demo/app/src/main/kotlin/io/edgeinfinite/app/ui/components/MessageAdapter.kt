package io.edgeinfinite.app.ui.components

import android.content.Context
import android.view.LayoutInflater
import android.view.View
import android.view.ViewGroup
import android.view.accessibility.AccessibilityNodeInfo
import android.view.accessibility.AccessibilityNodeInfo.AccessibilityAction
import android.widget.BaseAdapter
import android.widget.ListView
import android.widget.TextView
import io.edgeinfinite.app.R
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.format.Markdown
import io.edgeinfinite.app.ui.viewmodel.ChatItem

/**
 * The messages of a chat; answers are Markdown.
 *
 * @param onLongPress called with the place of a message.
 * @param onGoOn called when an answer that was cut is to become longer.
 */
class MessageAdapter(
    private val context: Context,
    private val onLongPress: (Int) -> Unit,
    private val onGoOn: () -> Unit,
) : BaseAdapter() {
    private val markdown = Markdown(context)
    private var items = emptyList<ChatItem>()

    /**
     * Shows messages; where only the last one's text grew, only its view changes.
     *
     * @param list the view that this adapter fills.
     */
    fun show(
        newItems: List<ChatItem>,
        list: ListView,
    ) {
        if (newItems == items) return
        val sameRows = newItems.size == items.size && newItems.dropLast(1) == items.dropLast(1)
        items = newItems
        val row = list.getChildAt(items.lastIndex - list.firstVisiblePosition)
        if (sameRows && row != null && row.tag == typeOf(items.last())) {
            bind(row, items.lastIndex)
        } else {
            notifyDataSetChanged()
        }
    }

    override fun getCount() = items.size

    override fun getItem(position: Int) = items[position]

    override fun getItemId(position: Int) = position.toLong()

    override fun getViewTypeCount() = Type.entries.size

    override fun getItemViewType(position: Int) = typeOf(items[position]).ordinal

    override fun isEnabled(position: Int) = false

    override fun getView(
        position: Int,
        convertView: View?,
        parent: ViewGroup,
    ): View {
        val type = typeOf(items[position])
        val view = convertView ?: LayoutInflater.from(context).inflate(type.layout, parent, false)
        view.tag = type
        bind(view, position)
        return view
    }

    private fun bind(
        view: View,
        position: Int,
    ) {
        val text = view.view<TextView>(R.id.text)
        val item = items[position]
        if (item !is ChatItem.File) {
            text.setOnLongClickListener {
                onLongPress(position)
                true
            }
            text.accessibilityDelegate = longPressNamed
        }
        when (item) {
            is ChatItem.User -> {
                text.text = item.text
                text.contentDescription = context.getString(R.string.you_said, item.text)
            }
            is ChatItem.Answer -> bindAnswer(view, text, item)
            is ChatItem.File -> {
                text.text = item.name
                text.contentDescription = context.getString(R.string.document_read, item.name)
                view.view<TextView>(R.id.figures).text = fileNote(item)
            }
        }
    }

    private fun bindAnswer(
        view: View,
        text: TextView,
        item: ChatItem.Answer,
    ) {
        val shown = if (item.text.isEmpty()) context.getString(R.string.thinking) else markdown.render(item.text)
        text.text = shown
        text.contentDescription = context.getString(R.string.model_said, shown)
        val line = item.figures?.line(context).orEmpty()
        val figures = view.view<TextView>(R.id.figures)
        figures.text = line
        figures.visibility = if (line.isEmpty()) View.GONE else View.VISIBLE
        view.view<View>(R.id.go_on).run {
            visibility = if (item.canGoOn) View.VISIBLE else View.GONE
            setOnClickListener { onGoOn() }
        }
    }

    /** Says what a long press does. */
    private val longPressNamed =
        object : View.AccessibilityDelegate() {
            override fun onInitializeAccessibilityNodeInfo(
                host: View,
                info: AccessibilityNodeInfo,
            ) {
                super.onInitializeAccessibilityNodeInfo(host, info)
                val label = context.getString(R.string.message_actions)
                info.addAction(AccessibilityAction(AccessibilityNodeInfo.ACTION_LONG_CLICK, label))
            }
        }

    private fun fileNote(item: ChatItem.File): String =
        when {
            item.isBeingRead -> context.getString(R.string.document_reading)
            item.unread > 0 -> context.getString(R.string.document_partly, Format.count(item.unread))
            else -> context.getString(R.string.document_note)
        }

    private fun typeOf(item: ChatItem): Type =
        when (item) {
            is ChatItem.User -> Type.USER
            is ChatItem.Answer -> Type.ANSWER
            is ChatItem.File -> Type.FILE
        }

    private enum class Type(
        val layout: Int,
    ) {
        USER(R.layout.item_user),
        ANSWER(R.layout.item_assistant),
        FILE(R.layout.item_document),
    }
}
