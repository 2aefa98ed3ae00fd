package io.edgeinfinite.app.ui.viewmodel

import android.os.Build
import android.util.Log
import io.edgeinfinite.app.AppServices
import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.data.DeviceFacts
import io.edgeinfinite.app.data.LoadedModel
import io.edgeinfinite.app.telling
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Generator
import io.edgeinfinite.core.Sampler
import io.edgeinfinite.core.SamplingOptions
import io.edgeinfinite.core.Session
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import java.util.Locale

/**
 * One measurement, as one line of JSON for a report. Speeds are tokens per second, times seconds.
 *
 * @property threads null for the runtime's own choice.
 * @property peakBytes the most memory of the process since it began, not of the measurement alone.
 * @property thermal before and after, see [DeviceFacts.thermal].
 * @property battery before and after, in percent.
 */
@Serializable
data class BenchmarkRow(
    val app: String,
    val device: String,
    val soc: String,
    val android: Int,
    val abi: String,
    val processors: Int,
    val threads: Int?,
    val model: String,
    val backbone: String,
    val weights: String,
    val engine: String,
    val accelerator: String,
    @SerialName("state_bytes") val stateBytes: Long,
    @SerialName("prompt_tokens") val promptTokens: Long,
    @SerialName("new_tokens") val newTokens: Int,
    @SerialName("first_token_s") val firstTokenS: Double?,
    @SerialName("read_tokens_per_s") val readTokensPerS: Double?,
    @SerialName("write_tokens_per_s") val writeTokensPerS: Double?,
    @SerialName("median_token_s") val medianTokenS: Double?,
    @SerialName("slowest_token_s") val slowestTokenS: Double?,
    @SerialName("peak_bytes") val peakBytes: Long?,
    val thermal: List<Int?>,
    val battery: List<Int?>,
    val charging: Boolean?,
) {
    /** One line. */
    fun json(): String = Json.encodeToString(this)
}

/** What the benchmark's screen shows; null for what isn't there. */
data class BenchmarkUiState(
    val models: List<String> = emptyList(),
    val isRunning: Boolean = false,
    val row: BenchmarkRow? = null,
    val problem: Problem? = null,
)

/**
 * Measures a model on this device: reads [PROMPT_TOKENS] tokens and writes [NEW_TOKENS], greedily, in a
 * state of its own. To be used on the main thread.
 */
class BenchmarkViewModel(
    private val services: AppServices,
    private val facts: DeviceFacts,
) {
    private val mutable = MutableStateFlow(BenchmarkUiState())

    /** What the screen shows. */
    val state: StateFlow<BenchmarkUiState> = mutable.asStateFlow()

    private var job: Job? = null

    /** Reads the list of models again. */
    fun refresh() {
        services.scope.launch {
            val models = services.home.usableModels()
            mutable.update { it.copy(models = models) }
        }
    }

    /** Measures; an open chat is interrupted and saved, since one model fits into memory. */
    fun run(model: String) {
        if (mutable.value.isRunning) return
        mutable.update { it.copy(isRunning = true, row = null, problem = null) }
        services.closeAnyChat()
        val measuring =
            services.scope.launch {
                telling({ problem -> mutable.update { it.copy(problem = problem) } }) {
                    val row = services.oneAtATime.withLock { measure(model) }
                    Log.i(LOG_TAG, row.json())
                    mutable.update { it.copy(row = row) }
                }
            }
        // Also where it was stopped before it began.
        measuring.invokeOnCompletion { mutable.update { it.copy(isRunning = false) } }
        job = measuring
    }

    /** Ends a measurement within one chunk or token; it has no result. */
    fun stop() {
        job?.cancel()
    }

    private suspend fun measure(name: String): BenchmarkRow {
        val how = services.settings.settings.value.howToRun
        val model = withContext(services.computing) { services.models.open(name, how) }
        val session = withContext(services.computing) { Session(model.engine) }
        val before = facts.thermal to facts.battery
        val charging = facts.isCharging
        try {
            val sampler = Sampler(SamplingOptions(logitBias = model.tokenizer.stopIds.associateWith { NEVER }))
            val generator = Generator(session, model.tokenizer, prompt(model), sampler, NEW_TOKENS)
            lateinit var end: GenerationEvent.Finished
            generator.events().flowOn(services.computing).collect { if (it is GenerationEvent.Finished) end = it }
            return rowOf(name, model, how.threads, end, before, charging)
        } finally {
            withContext(NonCancellable + services.computing) { session.close() }
        }
    }

    private fun rowOf(
        name: String,
        model: LoadedModel,
        threads: Int?,
        end: GenerationEvent.Finished,
        before: Pair<Int?, Int?>,
        charging: Boolean?,
    ): BenchmarkRow {
        val manifest = model.artifact.manifest
        val figures = end.statistics
        return BenchmarkRow(
            app = facts.version,
            device = facts.device,
            soc = facts.soc,
            android = Build.VERSION.SDK_INT,
            abi = Build.SUPPORTED_ABIS.firstOrNull().orEmpty(),
            processors = Runtime.getRuntime().availableProcessors(),
            threads = threads,
            model = name,
            backbone = manifest.backbone.name,
            weights = manifest.quantization.recipe,
            engine = figures.engine,
            accelerator = model.accelerator.name.lowercase(Locale.ROOT),
            stateBytes = manifest.stateBytes,
            promptTokens = figures.promptTokens,
            newTokens = figures.newTokens,
            firstTokenS = figures.ttftS,
            readTokensPerS = figures.prefillTokensPerS,
            writeTokensPerS = figures.decodeTokensPerS,
            medianTokenS = figures.medianTokenS,
            slowestTokenS = figures.slowestTokenS,
            peakBytes = DeviceFacts.peakBytes(),
            thermal = listOf(before.first, facts.thermal),
            battery = listOf(before.second, facts.battery),
            charging = charging,
        )
    }

    /** The same text on every device; how many of it are one token depends on the tokenizer. */
    private fun prompt(model: LoadedModel): IntArray {
        val text = StringBuilder()
        var tokens = IntArray(0)
        while (tokens.size < PROMPT_TOKENS) {
            repeat(SENTENCES) { text.append(SENTENCE) }
            tokens = model.tokenizer.encodeText(text.toString())
        }
        return tokens.copyOf(PROMPT_TOKENS)
    }

    companion object {
        /** Of the log's line with the result, which `adb logcat -d -s EdgeInfiniteBenchmark` prints. */
        const val LOG_TAG = "EdgeInfiniteBenchmark"

        /** Tokens that are read. */
        const val PROMPT_TOKENS = 1_024

        /** Tokens that are written; the model may not end before. */
        const val NEW_TOKENS = 64
        private const val NEVER = -1e4
        private const val SENTENCES = 40
        private const val SENTENCE = "The ship left the harbour at dawn, and nobody on board knew where it was bound. "
    }
}
