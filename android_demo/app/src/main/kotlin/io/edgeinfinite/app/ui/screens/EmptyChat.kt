package io.edgeinfinite.app.ui.screens

import android.app.Activity
import android.view.View
import android.widget.Button
import android.widget.LinearLayout
import android.widget.TextView
import io.edgeinfinite.app.R
import io.edgeinfinite.app.ui.components.fill
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.ChatUiState
import io.edgeinfinite.app.ui.viewmodel.Phase

/**
 * What stands where messages will: that the model is being opened, then what can be done with it, and
 * prompts to begin with.
 *
 * @param onPrompt called with the prompt that was touched.
 */
internal class EmptyChat(
    private val activity: Activity,
    onPrompt: (String) -> Unit,
) {
    init {
        val prompts = activity.resources.getStringArray(R.array.prompts)
        activity.view<LinearLayout>(R.id.prompts).fill(prompts.size, R.layout.row_prompt) { row, index ->
            (row as Button).text = prompts[index]
            row.setOnClickListener { onPrompt(prompts[index]) }
        }
    }

    /** @param isTight whether there is no room for more than a line or two. */
    fun show(
        state: ChatUiState,
        isTight: Boolean,
    ) {
        val isLoading = state.phase == Phase.Loading
        activity.view<View>(R.id.empty).showIf(state.items.isEmpty() && state.phase !is Phase.Failed)
        activity.view<View>(R.id.loading).showIf(isLoading)
        activity.view<View>(R.id.empty_icon).showIf(!isLoading && !isTight)
        activity.view<View>(R.id.empty_text).showIf(!isLoading && !isTight)
        activity.view<View>(R.id.prompts).showIf(state.phase == Phase.Ready && !isTight)
        activity
            .view<TextView>(R.id.empty_title)
            .setText(if (isLoading) R.string.chat_loading else R.string.chat_empty_title)
        activity.view<TextView>(R.id.empty_text).setText(R.string.chat_empty)
    }
}
