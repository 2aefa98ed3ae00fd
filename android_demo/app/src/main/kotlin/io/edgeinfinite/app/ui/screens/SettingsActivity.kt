package io.edgeinfinite.app.ui.screens

import android.Manifest
import android.app.AlertDialog
import android.content.Intent
import android.content.pm.PackageManager
import android.os.Build
import android.os.Bundle
import android.text.Editable
import android.text.TextWatcher
import android.view.View
import android.widget.EditText
import android.widget.RadioButton
import android.widget.SeekBar
import android.widget.Switch
import android.widget.TextView
import io.edgeinfinite.app.R
import io.edgeinfinite.app.services
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.viewmodel.NpuProblem
import io.edgeinfinite.app.ui.viewmodel.SettingsUiState
import io.edgeinfinite.app.ui.viewmodel.SettingsViewModel
import java.util.Locale
import kotlin.math.roundToInt

/** The settings; what can't work on the artifact at hand is disabled and says why. */
class SettingsActivity : ScreenActivity() {
    private val viewModel: SettingsViewModel get() = services.settingsScreen

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        showLayout(R.layout.activity_settings)
        slider(R.id.temperature) { viewModel.setTemperature(it) }
        slider(R.id.top_p) { viewModel.setTopP(it + 1) }
        slider(R.id.penalty) { viewModel.setRepetitionPenalty(it) }
        view<View>(R.id.recommended).setOnClickListener { viewModel.useRecommended() }
        view<View>(R.id.benchmark).setOnClickListener {
            startActivity(Intent(this, BenchmarkActivity::class.java))
        }
        slider(R.id.longest) { viewModel.setLongest((it + 1) * LONGEST_STEP) }
        slider(R.id.threads) { viewModel.setThreads(it.takeIf { threads -> threads > 0 }) }
        view<SeekBar>(R.id.threads).max = viewModel.state.value.processors
        view<View>(R.id.runtime_cpu).setOnClickListener { viewModel.setNpu(false) }
        view<View>(R.id.runtime_npu).setOnClickListener { viewModel.setNpu(true) }
        view<Switch>(R.id.seed_fixed).setOnCheckedChangeListener { _, isFixed ->
            if (isFixed != (seed() != null)) viewModel.setSeed(if (isFixed) DEFAULT_SEED else null)
        }
        view<Switch>(R.id.background).setOnCheckedChangeListener { _, isOn ->
            if (isOn != viewModel.state.value.settings.background) takeBackground(isOn)
        }
        onText(R.id.seed, ::takeSeed)
        view<EditText>(R.id.stop).setText(viewModel.state.value.settings.stop.joinToString("\n"))
        onText(R.id.stop, viewModel::setStop)
    }

    private fun onText(
        id: Int,
        take: (String) -> Unit,
    ) = view<EditText>(id).addTextChangedListener(
        object : TextWatcher {
            override fun beforeTextChanged(text: CharSequence?, start: Int, count: Int, after: Int) = Unit

            override fun onTextChanged(text: CharSequence?, start: Int, before: Int, count: Int) = Unit

            override fun afterTextChanged(text: Editable?) = take(text.toString())
        },
    )

    /** Explains the permission before the system asks for it; without it the setting stays off. */
    private fun takeBackground(isOn: Boolean) {
        if (!isOn || mayNotify()) {
            viewModel.setBackground(isOn)
            return
        }
        val later = { view<Switch>(R.id.background).isChecked = false }
        AlertDialog
            .Builder(this)
            .setTitle(R.string.settings_background)
            .setMessage(R.string.background_permission)
            .setNegativeButton(R.string.cancel) { _, _ -> later() }
            .setOnCancelListener { later() }
            .setPositiveButton(R.string.background_ask) { _, _ -> askToNotify() }
            .show()
    }

    private fun mayNotify() =
        Build.VERSION.SDK_INT < Build.VERSION_CODES.TIRAMISU ||
            checkSelfPermission(Manifest.permission.POST_NOTIFICATIONS) == PackageManager.PERMISSION_GRANTED

    private fun askToNotify() {
        if (Build.VERSION.SDK_INT < Build.VERSION_CODES.TIRAMISU) return
        requestPermissions(arrayOf(Manifest.permission.POST_NOTIFICATIONS), ASK_TO_NOTIFY)
    }

    override fun onRequestPermissionsResult(
        requestCode: Int,
        permissions: Array<out String>,
        grantResults: IntArray,
    ) {
        if (requestCode != ASK_TO_NOTIFY) return
        val isGranted = grantResults.firstOrNull() == PackageManager.PERMISSION_GRANTED
        viewModel.setBackground(isGranted)
        view<Switch>(R.id.background).isChecked = isGranted
        if (!isGranted) say(R.string.background_refused)
    }

    override fun onStart() {
        super.onStart()
        viewModel.refresh(intent.getStringExtra(EXTRA_MODEL))
        collect(viewModel.state, ::show)
    }

    private fun seed(): Long? = viewModel.state.value.sampling.seed

    private fun takeSeed(text: String) {
        if (seed() == null) return
        val value = text.toLongOrNull()
        view<TextView>(R.id.seed_note).run {
            setText(if (value == null) R.string.settings_seed_bad else R.string.settings_seed_note)
            setTextColor(getColor(if (value == null) R.color.error else R.color.on_surface_variant))
        }
        if (value != null) viewModel.setSeed(value)
    }

    private fun slider(
        id: Int,
        take: (Int) -> Unit,
    ) = view<SeekBar>(id).setOnSeekBarChangeListener(
        object : SeekBar.OnSeekBarChangeListener {
            override fun onProgressChanged(bar: SeekBar, progress: Int, fromUser: Boolean) {
                if (fromUser) take(progress)
            }

            override fun onStartTrackingTouch(bar: SeekBar) = Unit

            override fun onStopTrackingTouch(bar: SeekBar) = Unit
        },
    )

    private fun show(state: SettingsUiState) {
        val settings = state.settings
        val sampling = state.sampling
        val steps = SettingsViewModel.STEPS
        val isGreedy = sampling.temperature == 0.0
        showSlider(
            R.id.temperature,
            R.id.temperature_value,
            (sampling.temperature * steps).roundToInt(),
            if (isGreedy) getString(R.string.settings_greedy) else decimal(sampling.temperature),
        )
        showSlider(R.id.top_p, R.id.top_p_value, (sampling.topP * steps).roundToInt() - 1, decimal(sampling.topP))
        view<SeekBar>(R.id.top_p).isEnabled = !isGreedy
        view<TextView>(R.id.top_p_note)
            .setText(if (isGreedy) R.string.settings_top_p_off else R.string.settings_top_p_note)
        val penalty = sampling.repetitionPenalty
        val penaltyStep = ((penalty - 1) * steps).roundToInt()
        showSlider(R.id.penalty, R.id.penalty_value, penaltyStep, decimal(penalty))
        view<View>(R.id.recommended).isEnabled = settings.sampling != null
        showSlider(
            R.id.longest,
            R.id.longest_value,
            settings.maxNewTokens / LONGEST_STEP - 1,
            getString(R.string.settings_tokens, Format.count(settings.maxNewTokens.toLong())),
        )
        showSlider(
            R.id.threads,
            R.id.threads_value,
            settings.threads ?: 0,
            settings.threads?.toString() ?: getString(R.string.settings_threads_auto),
        )
        showSeed(sampling.seed)
        // Taken back in the system's settings.
        view<Switch>(R.id.background).isChecked = settings.background && mayNotify()
        showRuntime(settings.npu, state.npuProblem)
    }

    private fun showSlider(
        slider: Int,
        label: Int,
        step: Int,
        value: String,
    ) {
        view<SeekBar>(slider).run {
            progress = step
            stateDescriptionCompat(value)
        }
        view<TextView>(label).text = value
    }

    private fun SeekBar.stateDescriptionCompat(value: String) {
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.R) stateDescription = value
    }

    private fun showSeed(seed: Long?) {
        view<Switch>(R.id.seed_fixed).isChecked = seed != null
        val field = view<EditText>(R.id.seed)
        field.showIf(seed != null)
        if (seed != null && field.text.toString().toLongOrNull() != seed && !field.hasFocus()) {
            field.setText(seed.toString())
        }
    }

    private fun showRuntime(
        npu: Boolean,
        problem: NpuProblem?,
    ) {
        val canChoose = problem == null || problem is NpuProblem.Refused
        view<RadioButton>(R.id.runtime_cpu).isChecked = !npu || !canChoose
        view<RadioButton>(R.id.runtime_npu).isChecked = npu && canChoose
        view<RadioButton>(R.id.runtime_npu).isEnabled = canChoose
        view<TextView>(R.id.npu_reason).run {
            showIf(problem != null)
            text =
                when (problem) {
                    NpuProblem.NoModel -> getString(R.string.npu_no_model)
                    is NpuProblem.CpuArtifact -> getString(R.string.npu_cpu_artifact, problem.model)
                    is NpuProblem.OtherChip -> getString(R.string.npu_other_chip, problem.model, problem.soc)
                    is NpuProblem.NoProvider -> getString(R.string.npu_no_provider, problem.model, problem.soc)
                    is NpuProblem.Refused -> getString(R.string.npu_refused, problem.reason)
                    null -> ""
                }
        }
    }

    private fun decimal(value: Double) = String.format(Locale.getDefault(), "%.2f", value)

    private companion object {
        const val LONGEST_STEP = 64
        const val DEFAULT_SEED = 42L
        const val ASK_TO_NOTIFY = 6
    }
}
