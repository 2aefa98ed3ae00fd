package io.edgeinfinite.app.ui.viewmodel

import io.edgeinfinite.app.AppServices
import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.R
import io.edgeinfinite.app.data.AppSettings
import io.edgeinfinite.app.data.ChatRecord
import io.edgeinfinite.app.data.HowToRun
import io.edgeinfinite.app.data.LoadedModel
import io.edgeinfinite.core.Autosave
import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.Sampler
import io.edgeinfinite.core.SamplingOptions
import io.edgeinfinite.core.Session
import io.edgeinfinite.core.SessionFigures
import io.edgeinfinite.core.Turn
import io.edgeinfinite.core.conversationSampling
import kotlinx.coroutines.withContext

/**
 * A chat whose model and state are in memory.
 *
 * @property lost why its saved state can't be used, null when it can.
 */
class OpenChat private constructor(
    val model: LoadedModel,
    val conversation: Conversation,
    val lost: Problem?,
    private val how: HowToRun,
    private val recommended: SamplingOptions,
) {
    private var sampler: Pair<SamplingOptions, Sampler>? = null

    /** Where the text stands; only between operations, or on the engine's thread between two steps. */
    val figures: SessionFigures get() = SessionFigures.of(conversation.session)

    /** Whether it was opened with these settings. */
    fun agreesWith(settings: AppSettings): Boolean = how == settings.howToRun

    /**
     * One sampler for as long as the options stay the same, so that a seed fixes a whole chat.
     *
     * @param chosen null for what the model's authors recommend.
     */
    fun samplerFor(chosen: SamplingOptions?): Sampler {
        val options = chosen ?: recommended
        return sampler?.takeIf { it.first == options }?.second
            ?: Sampler(options).also { sampler = options to it }
    }

    companion object {
        /** Memory for the states that turns are taken back to; one there always is. */
        private const val UNDO_BYTES = 96_000_000L
        private const val MOST_UNDO = 8L

        /**
         * Opens the model and continues from the chat's file, or starts a new text.
         *
         * @param onSaved called on the engine's thread whenever a running operation was saved.
         * @throws EdgeInfiniteException the model can't be opened.
         */
        suspend fun open(
            services: AppServices,
            record: ChatRecord,
            onSaved: (List<Turn>) -> Unit,
        ): OpenChat =
            withContext(services.computing) {
                val how = services.settings.settings.value.howToRun
                val model = services.models.open(record.model, how)
                val file = services.chats.sessionFile(record.id)
                val recommended = conversationSampling(model.artifact.folder)
                val autosave = Autosave(file, onSaved = onSaved)
                val undo = (UNDO_BYTES / maxOf(1, model.artifact.manifest.stateBytes)).coerceIn(1, MOST_UNDO).toInt()
                val fresh = {
                    val session = Session(model.engine)
                    Conversation(session, model.tokenizer, services.computing, autosave, undo, record.system)
                }
                if (!file.exists()) {
                    val lost = Problem(R.string.problem_state_deleted).takeIf { record.turns.isNotEmpty() }
                    return@withContext OpenChat(model, fresh(), lost, how, recommended)
                }
                try {
                    val saved =
                        Conversation.restore(
                            model.engine,
                            model.tokenizer,
                            file,
                            services.computing,
                            autosave,
                            undo,
                            record.system,
                        )
                    OpenChat(model, saved, null, how, recommended)
                } catch (error: EdgeInfiniteException) {
                    OpenChat(model, fresh(), Problem.of(error), how, recommended)
                }
            }
    }
}
