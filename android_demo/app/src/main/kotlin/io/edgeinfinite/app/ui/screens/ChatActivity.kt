package io.edgeinfinite.app.ui.screens

import android.content.Intent
import android.os.Bundle
import android.text.Editable
import android.text.TextWatcher
import android.view.Menu
import android.view.MenuItem
import android.view.View
import android.view.inputmethod.EditorInfo
import android.widget.EditText
import android.widget.ImageButton
import android.widget.ListView
import android.widget.TextView
import io.edgeinfinite.app.R
import io.edgeinfinite.app.services
import io.edgeinfinite.app.ui.components.MessageAdapter
import io.edgeinfinite.app.ui.components.SegmentBar
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.viewmodel.ChatUiState
import io.edgeinfinite.app.ui.viewmodel.ChatViewModel
import io.edgeinfinite.app.ui.viewmodel.Notice
import io.edgeinfinite.app.ui.viewmodel.Phase

/** One chat: messages, a long text's progress, and a line of memory figures that opens the rest. */
class ChatActivity : ScreenActivity() {
    private lateinit var viewModel: ChatViewModel
    private lateinit var adapter: MessageAdapter
    private lateinit var messages: ListView
    private lateinit var message: EditText
    private lateinit var send: ImageButton

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        val found = intent.getStringExtra(EXTRA_CHAT)?.let(services::chat)
        if (found == null) { // deleted meanwhile
            finish()
            return
        }
        viewModel = found
        showLayout(R.layout.activity_chat)
        messages = view(R.id.messages)
        message = view(R.id.message)
        send = view(R.id.send)
        adapter = MessageAdapter(this)
        messages.adapter = adapter
        view<View>(R.id.attach).setOnClickListener { pickText() }
        view<View>(R.id.strip).setOnClickListener { openMemory() }
        send.setOnClickListener { if (viewModel.state.value.canStop) viewModel.stop() else sendMessage() }
        message.setOnEditorActionListener { _, action, _ ->
            if (action == EditorInfo.IME_ACTION_SEND) sendMessage()
            action == EditorInfo.IME_ACTION_SEND
        }
        message.addTextChangedListener(
            object : TextWatcher {
                override fun beforeTextChanged(text: CharSequence?, start: Int, count: Int, after: Int) = Unit

                override fun onTextChanged(text: CharSequence?, start: Int, before: Int, count: Int) = Unit

                override fun afterTextChanged(text: Editable?) = showSend(viewModel.state.value)
            },
        )
    }

    override fun onStart() {
        super.onStart()
        if (isFinishing) return
        viewModel.resume()
        collect(viewModel.state, ::show)
    }

    override fun onDestroy() {
        if (isFinishing && ::viewModel.isInitialized) services.closeChat(viewModel.id)
        super.onDestroy()
    }

    override fun onCreateOptionsMenu(menu: Menu): Boolean {
        menuInflater.inflate(R.menu.chat, menu)
        return true
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        if (item.itemId != R.id.memory) return super.onOptionsItemSelected(item)
        openMemory()
        return true
    }

    override fun settingsIntent(): Intent =
        super.settingsIntent().putExtra(EXTRA_MODEL, viewModel.state.value.model)

    @Deprecated("the platform's own way; the newer one is in a library that this app doesn't need")
    override fun onActivityResult(
        requestCode: Int,
        resultCode: Int,
        data: Intent?,
    ) {
        val uri = data?.data?.takeIf { resultCode == RESULT_OK } ?: return
        if (requestCode == PICK_TEXT && ::viewModel.isInitialized) viewModel.attach(uri)
    }

    @Suppress("DEPRECATION")
    private fun pickText() {
        val intent =
            Intent(Intent.ACTION_OPEN_DOCUMENT)
                .addCategory(Intent.CATEGORY_OPENABLE)
                .setType("*/*")
                .putExtra(Intent.EXTRA_MIME_TYPES, TEXT_TYPES)
        startActivityForResult(intent, PICK_TEXT)
    }

    private fun openMemory() =
        startActivity(Intent(this, MemoryActivity::class.java).putExtra(EXTRA_CHAT, viewModel.id))

    private fun sendMessage() {
        if (viewModel.state.value.phase != Phase.Ready || message.text.isBlank()) return
        viewModel.send(message.text.toString())
        message.text.clear()
    }

    private fun show(state: ChatUiState) {
        actionBar?.title = state.model
        actionBar?.subtitle = state.backbone.ifEmpty { null }
        adapter.show(state.items, messages)
        showEmpty(state)
        showStrip(state)
        showReading(state)
        showNotice(state)
        showSend(state)
    }

    private fun showEmpty(state: ChatUiState) {
        val isLoading = state.phase == Phase.Loading
        view<View>(R.id.empty).showIf(state.items.isEmpty() && state.phase !is Phase.Failed)
        view<View>(R.id.loading).showIf(isLoading)
        view<View>(R.id.empty_icon).showIf(!isLoading)
        view<View>(R.id.empty_text).showIf(!isLoading)
        view<TextView>(R.id.empty_title)
            .setText(if (isLoading) R.string.chat_loading else R.string.chat_empty_title)
        view<TextView>(R.id.empty_text).setText(R.string.chat_empty)
    }

    private fun showStrip(state: ChatUiState) {
        val unknown = getString(R.string.not_measured)
        val read = Format.count(state.tokensRead)
        val stateBytes = state.session?.let { Format.bytes(it.stateBytes) } ?: unknown
        val appBytes = state.appBytes?.let(Format::bytes) ?: unknown
        view<TextView>(R.id.strip_read).text = read
        view<TextView>(R.id.strip_state).text = stateBytes
        view<TextView>(R.id.strip_app).text = appBytes
        view<View>(R.id.strip).contentDescription =
            getString(R.string.strip_description, read, stateBytes, appBytes)
    }

    private fun showReading(state: ChatUiState) {
        val reading = state.phase as? Phase.Reading
        view<View>(R.id.reading).showIf(reading != null)
        if (reading == null) return
        val segment = (state.geometry?.segmentLength ?: 1).toLong()
        val segments = maxOf(1, (reading.total + segment - 1) / segment)
        val current = minOf(segments, reading.read / segment + 1)
        view<TextView>(R.id.reading_name).text =
            getString(R.string.reading, reading.name ?: getString(R.string.reading_prompt))
        view<TextView>(R.id.reading_rate).text =
            reading.tokensPerS?.let { getString(R.string.reading_rate, Format.rate(it)) }.orEmpty()
        view<TextView>(R.id.reading_segment).text =
            getString(R.string.reading_segment, current.toInt(), segments.toInt())
        view<TextView>(R.id.reading_tokens).text =
            getString(R.string.reading_progress, Format.count(reading.read), Format.count(reading.total))
        view<SegmentBar>(R.id.reading_bar).show(reading.read, reading.total, segment)
    }

    private fun showNotice(state: ChatUiState) {
        val failed = state.phase as? Phase.Failed
        val isPartlyRead = state.unread > 0 && state.phase == Phase.Ready
        val text =
            when (val notice = state.notice) {
                is Notice.Problem -> notice.message.sentence()
                is Notice.HistoryLost -> getString(R.string.history_lost, notice.reason.sentence())
                Notice.LowMemory -> getString(R.string.low_memory)
                null ->
                    failed?.message?.sentence()
                        ?: getString(R.string.document_partly, Format.count(state.unread.toLong()))
            }
        view<View>(R.id.notice).showIf(state.notice != null || failed != null || isPartlyRead)
        view<TextView>(R.id.notice_text).text = text
        view<View>(R.id.notice_more).run {
            showIf(state.notice == null && failed == null)
            setOnClickListener { viewModel.dropUnread() }
        }
        view<TextView>(R.id.notice_action).run {
            setText(
                when {
                    state.notice != null -> R.string.dismiss
                    failed != null -> R.string.retry
                    else -> R.string.read_on
                },
            )
            setOnClickListener {
                when {
                    state.notice != null -> viewModel.dismissNotice()
                    failed != null -> viewModel.resume()
                    else -> viewModel.readOn()
                }
            }
        }
    }

    private fun showSend(state: ChatUiState) {
        view<View>(R.id.attach).isEnabled = state.phase == Phase.Ready
        send.isEnabled = state.canStop || (state.phase == Phase.Ready && message.text.isNotBlank())
        send.setImageResource(if (state.canStop) R.drawable.ic_stop else R.drawable.ic_send)
        send.contentDescription = getString(if (state.canStop) R.string.stop else R.string.send)
    }

    internal companion object {
        /** Request: a text file. */
        const val PICK_TEXT = 3
        private val TEXT_TYPES = arrayOf("text/*", "application/json", "application/xml")
    }
}
