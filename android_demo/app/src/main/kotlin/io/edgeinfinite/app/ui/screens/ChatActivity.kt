package io.edgeinfinite.app.ui.screens

import android.content.Intent
import android.os.Bundle
import android.text.Editable
import android.text.TextWatcher
import android.view.Menu
import android.view.MenuItem
import android.view.View
import android.view.inputmethod.EditorInfo
import android.view.inputmethod.InputMethodManager
import android.widget.EditText
import android.widget.ImageButton
import android.widget.ListView
import android.widget.TextView
import io.edgeinfinite.app.R
import io.edgeinfinite.app.background.ReadingService
import io.edgeinfinite.app.services
import io.edgeinfinite.app.ui.components.MessageAdapter
import io.edgeinfinite.app.ui.components.SegmentBar
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.viewmodel.ChatUiState
import io.edgeinfinite.app.ui.viewmodel.ChatViewModel
import io.edgeinfinite.app.ui.viewmodel.NextStep
import io.edgeinfinite.app.ui.viewmodel.Notice
import io.edgeinfinite.app.ui.viewmodel.Phase
import kotlinx.coroutines.flow.combine

/** One chat: messages, a long text's progress, and a line of memory figures that opens the rest. */
class ChatActivity : ScreenActivity() {
    private lateinit var viewModel: ChatViewModel
    private lateinit var adapter: MessageAdapter
    private lateinit var menu: ChatMenu
    private lateinit var empty: EmptyChat
    private var pane: ChatsPane? = null
    private lateinit var messages: ListView
    private lateinit var message: EditText
    private lateinit var send: ImageButton
    private var enabledInMenu = emptySet<Int>()
    private var announced: Pair<Phase, Long?>? = null

    /** A keyboard leaves so little room that only messages and the field fit. */
    private var isTight = false
    private var wasNoticed = false
    private var isFollowed = false

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
        menu = ChatMenu(this, viewModel)
        val actions = MessageActions(this, viewModel)
        adapter = MessageAdapter(this, actions::open, viewModel::goOn)
        empty = EmptyChat(this, viewModel::send)
        pane = ChatsPane.of(this, services, viewModel.id)?.also { it.offerNewChat(viewModel.state.value.model) }
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
        view<View>(R.id.root).addOnLayoutChangeListener { root, _, top, _, bottom, _, _, _, _ ->
            val room = bottom - top - root.paddingTop - root.paddingBottom
            val isTightNow = room < TIGHT_DP * resources.displayMetrics.density
            if (isTightNow != isTight) {
                isTight = isTightNow
                root.post { if (!isFinishing) show(viewModel.state.value) } // a layout can't begin another
            }
        }
        if (savedInstanceState == null) takeShared()
    }

    /** What another app gave; once, and not again after a rotation. */
    private fun takeShared() {
        val text = intent.getStringExtra(EXTRA_TEXT)
        val document = intent.data
        when {
            document != null -> viewModel.attach(document)
            text == null -> Unit
            text.length > LONGEST_DRAFT -> viewModel.attachText(getString(R.string.shared_text), text)
            else -> message.setText(text)
        }
    }

    override fun onStart() {
        super.onStart()
        if (isFinishing) return
        if (services.chat(viewModel.id) !== viewModel) { // another chat was open in between
            recreate()
            return
        }
        viewModel.resume()
        collect(viewModel.state, ::show)
        pane?.let { pane ->
            services.home.refresh()
            collect(services.home.state.combine(services.running, ::Pair)) { (home, running) ->
                pane.show(home.chats, running)
            }
        }
    }

    override fun onDestroy() {
        if (isFinishing && ::viewModel.isInitialized) services.leaveChat(viewModel.id)
        super.onDestroy()
    }

    override fun onCreateOptionsMenu(menu: Menu): Boolean {
        menuInflater.inflate(R.menu.chat, menu)
        return true
    }

    override fun onPrepareOptionsMenu(menu: Menu): Boolean {
        if (!isFinishing) this.menu.prepare(menu)
        return super.onPrepareOptionsMenu(menu)
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        if (menu.select(item)) return true
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
        if (!::viewModel.isInitialized) return
        when (requestCode) {
            PICK_TEXT -> viewModel.attach(uri)
            ChatMenu.SAVE_READING -> viewModel.saveTo(uri)
        }
    }

    private fun pickText() {
        val intent =
            Intent(Intent.ACTION_OPEN_DOCUMENT)
                .addCategory(Intent.CATEGORY_OPENABLE)
                .setType("*/*")
                .putExtra(Intent.EXTRA_MIME_TYPES, TEXT_TYPES)
        startOrSay(intent, PICK_TEXT)
    }

    private fun openMemory() =
        startActivity(Intent(this, MemoryActivity::class.java).putExtra(EXTRA_CHAT, viewModel.id))

    private fun sendMessage() {
        if (viewModel.state.value.phase != Phase.Ready || message.text.isBlank()) return
        viewModel.send(message.text.toString())
        message.text.clear()
    }

    private fun show(state: ChatUiState) {
        announce(state)
        actionBar?.title = state.title.ifEmpty { state.model }
        actionBar?.subtitle = subtitleOf(state)
        adapter.show(state.items, messages)
        empty.show(state, isTight)
        pane?.follow(state)
        showStrip(state)
        showReading(state)
        showNotice(state)
        showSend(state)
        val enabled = menu.enabledIn(state)
        if (enabled != enabledInMenu) invalidateOptionsMenu()
        enabledInMenu = enabled
        state.next?.let(::follow)
    }

    /** What the title leaves out; the figures of the progress where its card has no room. */
    private fun subtitleOf(state: ChatUiState): String? {
        val reading = state.phase as? Phase.Reading
        val model = if (state.title.isEmpty()) state.backbone else state.model
        if (!isTight || reading == null) return model.ifEmpty { null }
        return getString(R.string.reading_progress, Format.count(reading.read), Format.count(reading.total))
    }

    /** Tells who can't see the screen how a reading gets on, by quarters, and that an answer is complete. */
    private fun announce(state: ChatUiState) {
        val before = announced
        val reading = state.phase as? Phase.Reading
        val quarter = reading?.let { QUARTERS * it.read / maxOf(1, it.total) }
        announced = state.phase to quarter
        val text =
            when {
                state.phase == Phase.Ready && before?.first == Phase.Answering -> getString(R.string.answer_ready)
                reading == null || before == null || before.second == quarter -> return
                else -> getString(R.string.reading_progress, Format.count(reading.read), Format.count(reading.total))
            }
        view<View>(R.id.root).announceForAccessibility(text)
    }

    private fun follow(next: NextStep) {
        viewModel.nextIsDone()
        when (next) {
            is NextStep.Edit -> message.run {
                setText(next.question)
                setSelection(text.length)
                requestFocus()
            }
            is NextStep.Open -> {
                say(R.string.forked)
                startActivity(chatIntent(next.id))
                finish()
            }
            NextStep.Saved -> say(R.string.saved)
        }
    }

    private fun showStrip(state: ChatUiState) {
        val unknown = getString(R.string.not_measured)
        val read = Format.count(state.tokensRead)
        val stateBytes = state.session?.let { Format.bytes(it.stateBytes) } ?: unknown
        val appBytes = state.appBytes?.let(Format::bytes)
        view<TextView>(R.id.strip_read).text = read
        view<TextView>(R.id.strip_state).text = stateBytes
        view<TextView>(R.id.strip_app).text = appBytes.orEmpty()
        view<View>(R.id.strip_app_part).showIf(appBytes != null)
        // A keyboard in landscape leaves no room for it; the toolbar opens the same figures.
        view<View>(R.id.strip).showIf(!isTight && resources.configuration.screenHeightDp >= ROOM_DP)
        view<View>(R.id.strip).contentDescription =
            if (appBytes == null) {
                getString(R.string.strip_description_state, read, stateBytes)
            } else {
                getString(R.string.strip_description, read, stateBytes, appBytes)
            }
    }

    private fun showReading(state: ChatUiState) {
        val reading = state.phase as? Phase.Reading
        view<View>(R.id.reading).showIf(reading != null && !isTight)
        // A long text takes longer than a screen stays on by itself.
        view<View>(R.id.root).keepScreenOn = reading != null
        followInBackground(reading != null)
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

    /** Begins when a reading does, since a service can't begin once the app is left. */
    private fun followInBackground(isReading: Boolean) {
        if (isReading && !isFollowed && services.settings.settings.value.background) ReadingService.start(this)
        isFollowed = isReading
    }

    private fun showNotice(state: ChatUiState) {
        val failed = state.phase as? Phase.Failed
        val isPartlyRead = state.unread > 0 && state.phase == Phase.Ready
        val text =
            when (val notice = state.notice) {
                is Notice.Failure -> notice.problem.words(resources)
                is Notice.HistoryLost -> getString(R.string.history_lost, notice.reason.words(resources))
                Notice.LowMemory -> getString(R.string.low_memory)
                is Notice.Guessed -> getString(R.string.guessed, notice.encoding, notice.sample)
                null ->
                    failed?.problem?.words(resources)
                        ?: getString(R.string.document_partly, Format.count(state.unread.toLong()))
            }
        val isNoticed = state.notice != null || failed != null || isPartlyRead
        // It comes back when the keyboard is closed, as a new one does by itself.
        if (isTight && isNoticed && !wasNoticed) closeKeyboard()
        wasNoticed = isNoticed
        view<View>(R.id.notice).showIf(isNoticed && !isTight)
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

    private fun closeKeyboard() {
        getSystemService(InputMethodManager::class.java)?.hideSoftInputFromWindow(message.windowToken, 0)
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
        private val TEXT_TYPES =
            arrayOf(
                "text/*",
                "application/epub+zip",
                "application/pdf",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                "application/xhtml+xml",
                "application/json",
                "application/xml",
                "application/octet-stream", // what file managers say of suffixes that they don't know
            )

        private const val QUARTERS = 4
        private const val ROOM_DP = 480

        /** Less than the toolbar, the composer, the card of a reading and some messages need. */
        private const val TIGHT_DP = 300

        /** Longer texts of other apps are documents, not messages. */
        private const val LONGEST_DRAFT = 2_000
    }
}
