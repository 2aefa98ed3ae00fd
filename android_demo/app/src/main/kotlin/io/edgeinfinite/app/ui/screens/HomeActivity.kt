package io.edgeinfinite.app.ui.screens

import android.app.AlertDialog
import android.content.Intent
import android.net.Uri
import android.os.Bundle
import android.view.Menu
import android.view.MenuItem
import android.view.View
import android.widget.Button
import android.widget.LinearLayout
import android.widget.ProgressBar
import android.widget.TextView
import android.widget.Toast
import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.R
import io.edgeinfinite.app.services
import io.edgeinfinite.app.textOf
import io.edgeinfinite.app.ui.components.fill
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.viewmodel.HomeUiState
import io.edgeinfinite.app.ui.viewmodel.HomeViewModel
import io.edgeinfinite.app.ui.viewmodel.ImportEnd
import io.edgeinfinite.app.ui.viewmodel.ImportState
import io.edgeinfinite.app.ui.viewmodel.RunningChat
import io.edgeinfinite.core.ErrorCode
import io.edgeinfinite.core.StoredArtifact
import kotlinx.coroutines.flow.combine

/** Models and chats on this device; imports models through the system's file picker. */
class HomeActivity : ScreenActivity() {
    private val viewModel: HomeViewModel get() = services.home
    private lateinit var chats: ChatRows

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        showLayout(R.layout.activity_home, canGoBack = false)
        actionBar?.subtitle = getString(R.string.home_subtitle)
        chats = ChatRows(this, view(R.id.chats), { startActivity(chatIntent(it)) }, ::deleteChat)
        view<Button>(R.id.import_model).setOnClickListener { askForSource() }
        view<View>(R.id.get_model).run {
            showIf(services.releasePage.isNotEmpty())
            setOnClickListener { openReleasePage() }
        }
        view<View>(R.id.import_cancel).setOnClickListener { viewModel.cancelImport() }
    }

    override fun onStart() {
        super.onStart()
        viewModel.refresh()
        collect(viewModel.state.combine(services.running, ::Pair)) { (state, running) -> show(state, running) }
    }

    override fun onCreateOptionsMenu(menu: Menu): Boolean {
        menuInflater.inflate(R.menu.home, menu)
        menu.findItem(R.id.get_model_item).isVisible = services.releasePage.isNotEmpty()
        return true
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        when (item.itemId) {
            R.id.open_reading -> pickReading()
            R.id.get_model_item -> openReleasePage()
            else -> return super.onOptionsItemSelected(item)
        }
        return true
    }

    @Deprecated("the platform's own way; the newer one is in a library that this app doesn't need")
    override fun onActivityResult(
        requestCode: Int,
        resultCode: Int,
        data: Intent?,
    ) {
        val uri = data?.data?.takeIf { resultCode == RESULT_OK } ?: return
        when (requestCode) {
            PICK_ZIP -> viewModel.importZip(uri)
            PICK_FOLDER -> viewModel.importFolder(uri)
            PICK_READING -> viewModel.openReading(uri)
        }
    }

    /** In the browser: this app can't reach the network. */
    private fun openReleasePage() = startOrSay(Intent(Intent.ACTION_VIEW, Uri.parse(services.releasePage)))

    private fun askForSource() {
        val sources = listOf(R.string.import_zip, R.string.import_folder).map(::getString).toTypedArray()
        AlertDialog
            .Builder(this)
            .setTitle(R.string.import_title)
            .setItems(sources) { _, which -> if (which == 0) pickZip() else pickFolder() }
            .setNegativeButton(R.string.cancel, null)
            .show()
    }

    private fun pickZip() {
        val intent =
            Intent(Intent.ACTION_OPEN_DOCUMENT)
                .addCategory(Intent.CATEGORY_OPENABLE)
                .setType("*/*")
                .putExtra(Intent.EXTRA_MIME_TYPES, ZIP_TYPES)
        startOrSay(intent, PICK_ZIP)
    }

    private fun pickFolder() = startOrSay(Intent(Intent.ACTION_OPEN_DOCUMENT_TREE), PICK_FOLDER)

    private fun pickReading() {
        val intent = Intent(Intent.ACTION_OPEN_DOCUMENT).addCategory(Intent.CATEGORY_OPENABLE).setType("*/*")
        startOrSay(intent, PICK_READING)
    }

    private fun show(
        state: HomeUiState,
        running: RunningChat?,
    ) {
        showImport(state.importing)
        showEnd(state.end)
        val models = state.models ?: return
        view<View>(R.id.no_models).showIf(models.isEmpty())
        view<LinearLayout>(R.id.models).fill(models.size, R.layout.row_model) { row, index ->
            bindModel(row, models[index])
        }
        view<View>(R.id.chats_heading).showIf(state.chats.isNotEmpty())
        chats.show(state.chats, running)
    }

    private fun deleteChat(id: String) =
        confirm(getString(R.string.delete_chat_question), R.string.delete_chat_text) { viewModel.deleteChat(id) }

    private fun showImport(state: ImportState?) {
        view<View>(R.id.import_card).showIf(state != null)
        view<View>(R.id.import_model).run {
            isEnabled = state == null
            alpha = alphaOf(isEnabled)
        }
        if (state == null) return
        view<TextView>(R.id.import_name).text = getString(R.string.importing, state.name)
        val total = state.total
        view<ProgressBar>(R.id.import_progress).run {
            isIndeterminate = total == null
            if (total != null) progress = (state.copied * max / maxOf(1, total)).toInt()
        }
        val copied = Format.bytes(state.copied)
        view<TextView>(R.id.import_copied).text =
            if (total == null) {
                getString(R.string.import_copied, copied)
            } else {
                getString(R.string.import_copied_of, copied, Format.bytes(total))
            }
    }

    private fun showEnd(end: ImportEnd?) {
        val notice = view<TextView>(R.id.notice)
        notice.showIf(end is ImportEnd.Refused || end is ImportEnd.Stopped)
        when (end) {
            is ImportEnd.Refused -> notice.text = end.problem.words(resources)
            ImportEnd.Stopped -> notice.setText(R.string.import_stopped)
            is ImportEnd.Opened -> {
                viewModel.endIsSeen()
                startActivity(chatIntent(end.chat))
            }
            is ImportEnd.Done -> {
                Toast.makeText(this, getString(R.string.imported, end.name), Toast.LENGTH_SHORT).show()
                viewModel.endIsSeen()
            }
            null -> Unit
        }
    }

    private fun bindModel(
        row: View,
        model: StoredArtifact,
    ) {
        val name = model.folder.name
        row.view<TextView>(R.id.name).text = name
        val facts = row.view<TextView>(R.id.facts)
        facts.text = factsOf(model)
        facts.setTextColor(getColor(if (model.problem == null) R.color.on_surface_variant else R.color.error))
        val isUsable = model.manifest != null
        row.isEnabled = isUsable
        row.view<View>(R.id.name).alpha = alphaOf(isUsable)
        row.view<View>(R.id.icon).alpha = alphaOf(isUsable)
        row.contentDescription =
            if (isUsable) {
                getString(R.string.new_chat_with, name)
            } else {
                getString(R.string.model_damaged, name, facts.text)
            }
        row.setOnClickListener { startActivity(chatIntent(viewModel.newChat(name).id)) }
        row.view<View>(R.id.delete).run {
            contentDescription = getString(R.string.delete_model, name)
            setOnClickListener {
                confirm(getString(R.string.delete_model_question, name), R.string.delete_model_text) {
                    viewModel.deleteModel(name)
                }
            }
        }
    }

    private fun factsOf(model: StoredArtifact): String {
        val manifest =
            model.manifest
                ?: return Problem(textOf(model.code ?: ErrorCode.OTHER), detail = model.problem).words(resources)
        val recipe = manifest.quantization.recipe
        val weights = if (recipe == "none") "float32" else recipe
        val facts =
            getString(R.string.model_facts, manifest.backbone.name, weights, Format.bytes(manifest.bytes))
        return "$facts\n${getString(R.string.model_state, Format.bytes(manifest.stateBytes))}"
    }

    private fun confirm(
        title: String,
        text: Int,
        action: () -> Unit,
    ) {
        AlertDialog
            .Builder(this)
            .setTitle(title)
            .setMessage(text)
            .setPositiveButton(R.string.delete) { _, _ -> action() }
            .setNegativeButton(R.string.cancel, null)
            .show()
    }

    internal companion object {
        /** Request: a zip archive. */
        const val PICK_ZIP = 1

        /** Request: a folder. */
        const val PICK_FOLDER = 2

        /** Request: a saved reading. */
        const val PICK_READING = 5
        private val ZIP_TYPES =
            arrayOf("application/zip", "application/x-zip-compressed", "application/octet-stream")
    }
}
