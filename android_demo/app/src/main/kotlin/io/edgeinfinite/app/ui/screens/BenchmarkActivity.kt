package io.edgeinfinite.app.ui.screens

import android.app.AlertDialog
import android.os.Bundle
import android.view.View
import android.widget.Button
import android.widget.TextView
import io.edgeinfinite.app.R
import io.edgeinfinite.app.services
import io.edgeinfinite.app.ui.components.showLine
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.viewmodel.BenchmarkRow
import io.edgeinfinite.app.ui.viewmodel.BenchmarkUiState
import io.edgeinfinite.app.ui.viewmodel.BenchmarkViewModel

/** Measures a model on this device, and shares the result as one line of JSON. */
class BenchmarkActivity : ScreenActivity() {
    private val viewModel: BenchmarkViewModel get() = services.benchmark

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        showLayout(R.layout.activity_benchmark)
        view<TextView>(R.id.benchmark_note).text =
            getString(
                R.string.benchmark_note,
                Format.count(BenchmarkViewModel.PROMPT_TOKENS.toLong()),
                Format.count(BenchmarkViewModel.NEW_TOKENS.toLong()),
            )
        view<View>(R.id.share).setOnClickListener { viewModel.state.value.row?.let { share(it.json()) } }
    }

    override fun onStart() {
        super.onStart()
        viewModel.refresh()
        collect(viewModel.state, ::show)
    }

    override fun onDestroy() {
        if (isFinishing) viewModel.stop()
        super.onDestroy()
    }

    private fun show(state: BenchmarkUiState) {
        view<View>(R.id.root).keepScreenOn = state.isRunning
        view<View>(R.id.running).showIf(state.isRunning)
        view<Button>(R.id.run).run {
            setText(if (state.isRunning) R.string.stop else R.string.benchmark_run)
            isEnabled = state.isRunning || state.models.isNotEmpty()
            alpha = alphaOf(isEnabled)
            setOnClickListener { if (state.isRunning) viewModel.stop() else chooseModel(state.models) }
        }
        view<TextView>(R.id.benchmark_problem).run {
            val problem =
                state.problem?.words(resources)
                    ?: getString(R.string.import_first).takeIf { state.models.isEmpty() }
            showIf(problem != null)
            text = problem.orEmpty()
        }
        view<View>(R.id.result).showIf(state.row != null)
        state.row?.let(::showRow)
    }

    private fun showRow(row: BenchmarkRow) {
        val none = getString(R.string.not_measured)
        val rate = { value: Double? ->
            value?.let { getString(R.string.tokens_per_second, Format.rate(it)) } ?: none
        }
        view<TextView>(R.id.measured_model).text = row.model
        view<View>(R.id.line_ttft)
            .showLine(getString(R.string.memory_ttft), row.firstTokenS?.let(Format::seconds) ?: none)
        view<View>(R.id.line_prefill).showLine(getString(R.string.memory_prefill), rate(row.readTokensPerS))
        view<View>(R.id.line_decode).showLine(getString(R.string.memory_decode), rate(row.writeTokensPerS))
        view<View>(R.id.line_slowest)
            .showLine(getString(R.string.memory_slowest), row.slowestTokenS?.let(Format::seconds) ?: none)
        view<TextView>(R.id.json).text = row.json()
    }

    private fun chooseModel(models: List<String>) {
        if (models.size == 1) {
            viewModel.run(models.single())
            return
        }
        AlertDialog
            .Builder(this)
            .setTitle(R.string.benchmark_model)
            .setItems(models.toTypedArray()) { _, which -> viewModel.run(models[which]) }
            .show()
    }
}
