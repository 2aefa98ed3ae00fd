package io.edgeinfinite.app.ui.viewmodel

import io.edgeinfinite.app.AppServices
import io.edgeinfinite.app.data.AppSettings
import io.edgeinfinite.core.DEFAULT_SAMPLING
import io.edgeinfinite.core.SamplingOptions
import io.edgeinfinite.core.StoredArtifact
import io.edgeinfinite.core.conversationSampling
import io.edgeinfinite.onnx.NpuSupport
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext

/** Why the NPU can't be chosen. */
sealed interface NpuProblem {
    /** There is nothing to run. */
    data object NoModel : NpuProblem

    /** The artifact's graphs are made for the CPU. */
    data class CpuArtifact(
        val model: String,
    ) : NpuProblem

    /** The artifact was compiled for another chip than this device's. */
    data class OtherChip(
        val model: String,
        val soc: String,
    ) : NpuProblem

    /** The runtime in this app can't drive an NPU. */
    data class NoProvider(
        val model: String,
        val soc: String,
    ) : NpuProblem

    /** It was tried, and the CPU computes instead. */
    data class Refused(
        val reason: String,
    ) : NpuProblem
}

/**
 * Everything that the settings' screen shows.
 *
 * @property npuProblem null where the NPU can be used.
 * @property recommended how the model at hand samples until a person chooses.
 */
data class SettingsUiState(
    val settings: AppSettings,
    val processors: Int,
    val npuProblem: NpuProblem? = NpuProblem.NoModel,
    val recommended: SamplingOptions = DEFAULT_SAMPLING,
) {
    /** How tokens are chosen. */
    val sampling: SamplingOptions get() = settings.sampling ?: recommended
}

/**
 * The settings. To be used on the main thread.
 *
 * @param soc the device's chip, null where the system doesn't tell.
 */
class SettingsViewModel(
    private val services: AppServices,
    private val soc: () -> String?,
) {
    private val mutable =
        MutableStateFlow(
            SettingsUiState(services.settings.settings.value, Runtime.getRuntime().availableProcessors()),
        )

    /** What the screen shows. */
    val state: StateFlow<SettingsUiState> = mutable.asStateFlow()

    /**
     * Looks at the artifact at hand.
     *
     * @param model the open chat's, null for the first in the list.
     */
    fun refresh(model: String?) {
        services.scope.launch {
            val models = withContext(services.io) { services.importer.list() }
            val chosen = models.find { it.folder.name == model } ?: models.find { it.manifest != null }
            val recommended = chosen?.let { withContext(services.io) { conversationSampling(it.folder) } }
            val problem = npuProblemOf(chosen, soc()) ?: refused()
            mutable.update { it.copy(npuProblem = problem, recommended = recommended ?: it.recommended) }
        }
    }

    /** Temperature in steps of 0.05. */
    fun setTemperature(step: Int) = sample { it.copy(temperature = step / STEPS) }

    /** Top-p in steps of 0.05, from 1 on. */
    fun setTopP(step: Int) = sample { it.copy(topP = step / STEPS) }

    /** The repetition penalty in steps of 0.05, from 1 on. */
    fun setRepetitionPenalty(step: Int) = sample { it.copy(repetitionPenalty = 1 + step / STEPS) }

    /** Back to how each model's authors recommend it. */
    fun useRecommended() = change { it.copy(sampling = null) }

    /** Texts that end an answer, one a line. */
    fun setStop(lines: String) = change { it.copy(stop = lines.lines().filter(String::isNotEmpty)) }

    /** A fixed seed, or null for a new one per chat. */
    fun setSeed(seed: Long?) = sample { it.copy(seed = seed) }

    /** The longest answer in tokens. */
    fun setLongest(tokens: Int) = change { it.copy(maxNewTokens = tokens) }

    /** CPU threads, null for the runtime's choice. */
    fun setThreads(threads: Int?) = change { it.copy(threads = threads) }

    /** Whether models that were compiled for this device's NPU run there. */
    fun setNpu(npu: Boolean) = change { it.copy(npu = npu) }

    private fun refused(): NpuProblem? = services.models.npuProblem?.let(NpuProblem::Refused)

    /** Whether a text is read on when the app is left. */
    fun setBackground(isOn: Boolean) = change { it.copy(background = isOn) }

    private fun sample(how: (SamplingOptions) -> SamplingOptions) =
        change { it.copy(sampling = how(it.sampling ?: state.value.recommended)) }

    private fun change(how: (AppSettings) -> AppSettings) {
        services.settings.update(how)
        mutable.update { it.copy(settings = services.settings.settings.value) }
    }

    companion object {
        /** Steps per unit of temperature and top-p. */
        const val STEPS = 20.0

        /**
         * Why the NPU can't run this artifact; null when it can.
         *
         * @param hasProvider whether the runtime has one; the runtime is asked where null.
         */
        fun npuProblemOf(
            artifact: StoredArtifact?,
            soc: String?,
            hasProvider: Boolean? = null,
        ): NpuProblem? {
            val manifest = artifact?.manifest ?: return NpuProblem.NoModel
            val name = artifact.folder.name
            return when (NpuSupport.of(manifest, soc, hasProvider)) {
                NpuSupport.YES -> null
                NpuSupport.CPU_ARTIFACT -> NpuProblem.CpuArtifact(name)
                NpuSupport.OTHER_CHIP -> NpuProblem.OtherChip(name, manifest.npu?.soc.orEmpty())
                NpuSupport.NO_PROVIDER -> NpuProblem.NoProvider(name, manifest.npu?.soc.orEmpty())
            }
        }
    }
}
