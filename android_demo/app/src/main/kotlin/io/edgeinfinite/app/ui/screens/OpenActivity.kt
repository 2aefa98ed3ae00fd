package io.edgeinfinite.app.ui.screens

import android.app.Activity
import android.app.AlertDialog
import android.content.ContentResolver
import android.content.Intent
import android.net.Uri
import android.os.Build
import android.os.Bundle
import io.edgeinfinite.app.R
import io.edgeinfinite.app.services
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.cancel
import kotlinx.coroutines.launch

/**
 * What another app shares or opens with this one: a document, or a piece of text. It becomes a new
 * chat, with the model that the person chooses where there are several.
 *
 * Anything may call this, so only addresses of content are followed: a file's path could name what is
 * this app's own.
 */
class OpenActivity : Activity() {
    private val scope: CoroutineScope = MainScope()

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        val document = documentIn(intent)?.takeIf { it.scheme == ContentResolver.SCHEME_CONTENT }
        val text = intent.getCharSequenceExtra(Intent.EXTRA_TEXT)?.toString()
        if (document == null && text.isNullOrBlank()) {
            say(R.string.nothing_to_open)
            finish()
            return
        }
        scope.launch {
            val models = services.home.usableModels()
            when (models.size) {
                0 -> {
                    say(R.string.import_first)
                    startActivity(Intent(this@OpenActivity, HomeActivity::class.java))
                    finish()
                }
                1 -> start(models.single(), document, text)
                else -> ask(models) { start(it, document, text) }
            }
        }
    }

    override fun onDestroy() {
        scope.cancel()
        super.onDestroy()
    }

    private fun ask(
        models: List<String>,
        start: (String) -> Unit,
    ) {
        AlertDialog
            .Builder(this)
            .setTitle(R.string.open_with)
            .setItems(models.toTypedArray()) { _, which -> start(models[which]) }
            .setOnCancelListener { finish() }
            .show()
    }

    private fun start(
        model: String,
        document: Uri?,
        text: String?,
    ) {
        val chat = chatIntent(services.home.newChat(model).id)
        if (document == null) {
            chat.putExtra(EXTRA_TEXT, text)
        } else {
            // The chat's screen gets the right to read it that this one has.
            chat.setData(document).addFlags(Intent.FLAG_GRANT_READ_URI_PERMISSION)
        }
        startActivity(chat)
        finish()
    }

    private fun documentIn(intent: Intent): Uri? =
        when {
            intent.action == Intent.ACTION_VIEW -> intent.data
            Build.VERSION.SDK_INT >= Build.VERSION_CODES.TIRAMISU ->
                intent.getParcelableExtra(Intent.EXTRA_STREAM, Uri::class.java)
            else -> {
                @Suppress("DEPRECATION")
                intent.getParcelableExtra(Intent.EXTRA_STREAM)
            }
        }
}

/** Extra: a text that another app shared. */
internal const val EXTRA_TEXT = "text"
