package io.edgeinfinite.app.ui.screens

import android.app.Activity
import android.view.View
import io.edgeinfinite.app.AppServices
import io.edgeinfinite.app.R
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.viewmodel.ChatUiState
import io.edgeinfinite.app.ui.viewmodel.Phase
import io.edgeinfinite.app.ui.viewmodel.RunningChat

/** The list of chats beside the open one, on a screen that is wide enough for both. */
internal class ChatsPane(
    private val activity: Activity,
    private val services: AppServices,
    private val open: String,
) {
    private val rows = ChatRows(activity, activity.view(R.id.chats), ::change)
    private var phase: Phase? = null

    /** @param model of a new chat. */
    fun offerNewChat(model: String) =
        activity.view<View>(R.id.new_chat).setOnClickListener { change(services.home.newChat(model).id) }

    fun show(
        chats: List<ChatRecord>,
        running: RunningChat?,
    ) = rows.show(chats, running, open)

    /** The open chat may have another name, and stands first, when something of it has ended. */
    fun follow(state: ChatUiState) {
        if (state.phase == Phase.Ready && phase != Phase.Ready) services.home.refresh()
        phase = state.phase
    }

    private fun change(id: String) {
        if (id == open) return
        activity.startActivity(activity.chatIntent(id))
        activity.finish()
        @Suppress("DEPRECATION") // the newer one is of API 34
        activity.overridePendingTransition(0, 0)
    }

    companion object {
        /** Null on a screen that shows one thing at a time. */
        fun of(
            activity: Activity,
            services: AppServices,
            open: String,
        ): ChatsPane? =
            if (activity.findViewById<View>(R.id.chats) == null) null else ChatsPane(activity, services, open)
    }
}
