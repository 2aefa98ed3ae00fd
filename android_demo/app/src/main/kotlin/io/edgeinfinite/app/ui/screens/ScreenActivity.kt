package io.edgeinfinite.app.ui.screens

import android.app.Activity
import android.content.Context
import android.content.Intent
import android.view.MenuItem
import android.view.View
import android.widget.Toolbar
import io.edgeinfinite.app.R
import io.edgeinfinite.app.ui.components.padForSystemBars
import io.edgeinfinite.app.ui.components.view
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.cancel
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.launch

/** What all screens share: a toolbar below the status bar, and states shown while visible. */
abstract class ScreenActivity : Activity() {
    private var visible: CoroutineScope? = null

    /** Shows a layout that has `root` and `toolbar`. */
    protected fun showLayout(
        layout: Int,
        canGoBack: Boolean = true,
    ) {
        setContentView(layout)
        view<View>(R.id.root).padForSystemBars()
        setActionBar(view<Toolbar>(R.id.toolbar))
        actionBar?.run {
            setDisplayHomeAsUpEnabled(canGoBack)
            setHomeAsUpIndicator(R.drawable.ic_back)
            setHomeActionContentDescription(R.string.back)
        }
    }

    /** Calls [show] with every new state until the screen is hidden; for [onStart]. */
    protected fun <T> collect(
        states: Flow<T>,
        show: (T) -> Unit,
    ) {
        val scope = visible ?: MainScope().also { visible = it }
        scope.launch { states.collect { show(it) } }
    }

    override fun onStop() {
        visible?.cancel()
        visible = null
        super.onStop()
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean =
        when (item.itemId) {
            android.R.id.home -> {
                finish()
                true
            }
            R.id.settings -> {
                startActivity(settingsIntent())
                true
            }
            else -> super.onOptionsItemSelected(item)
        }

    /** Opens the settings; a chat's screen adds its model. */
    protected open fun settingsIntent() = Intent(this, SettingsActivity::class.java)
}

/** Shows or removes a view. */
internal fun View.showIf(condition: Boolean) {
    visibility = if (condition) View.VISIBLE else View.GONE
}

/** What can't be used now looks so. */
internal fun alphaOf(isEnabled: Boolean): Float = if (isEnabled) 1f else DISABLED

private const val DISABLED = 0.38f

/** The intent that opens a chat. */
internal fun Context.chatIntent(id: String): Intent =
    Intent(this, ChatActivity::class.java).putExtra(EXTRA_CHAT, id)

/** Extra: a chat's id. */
internal const val EXTRA_CHAT = "chat"

/** Extra: folder name of a model. */
internal const val EXTRA_MODEL = "model"
