package io.edgeinfinite.app.ui.screens

import android.os.Bundle
import android.text.SpannableStringBuilder
import android.text.Spanned
import android.text.style.ForegroundColorSpan
import android.view.View
import android.widget.TextView
import io.edgeinfinite.app.R
import io.edgeinfinite.app.services
import io.edgeinfinite.app.ui.components.CacheBar
import io.edgeinfinite.app.ui.components.MemoryChart
import io.edgeinfinite.app.ui.components.showLine
import io.edgeinfinite.app.ui.components.showTile
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.viewmodel.ChatUiState
import io.edgeinfinite.app.ui.viewmodel.ChatViewModel
import io.edgeinfinite.core.Geometry
import io.edgeinfinite.core.SessionFigures

/** What a chat's text takes: tokens read goes up, the state's bytes do not. */
class MemoryActivity : ScreenActivity() {
    private lateinit var viewModel: ChatViewModel

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        val found = intent.getStringExtra(EXTRA_CHAT)?.let(services::chat)
        if (found == null) {
            finish()
            return
        }
        viewModel = found
        showLayout(R.layout.activity_memory)
    }

    override fun onStart() {
        super.onStart()
        if (isFinishing) return
        viewModel.resume()
        collect(viewModel.state, ::show)
    }

    private fun show(state: ChatUiState) {
        actionBar?.subtitle = state.model
        showTiles(state)
        view<MemoryChart>(R.id.chart).show(state.trace)
        val session = state.session
        val geometry = state.geometry
        if (session != null && geometry != null) showCache(session, geometry, state.readsMemory)
        showSpeed(state)
    }

    private fun showTiles(state: ChatUiState) {
        val unknown = getString(R.string.not_measured)
        val session = state.session
        view<View>(R.id.tile_read).showTile(
            getString(R.string.memory_read),
            Format.count(state.tokensRead),
            getString(R.string.memory_read_note),
        )
        view<View>(R.id.tile_state).showTile(
            getString(R.string.memory_state),
            session?.let { Format.bytes(it.stateBytes) } ?: unknown,
            getString(R.string.memory_state_note),
        )
        view<View>(R.id.tile_app).showTile(
            getString(R.string.memory_app),
            state.appBytes?.let(Format::bytes) ?: unknown,
            getString(R.string.memory_app_note),
        )
        val segment = state.geometry?.let { Format.count(it.segmentLength.toLong()) } ?: unknown
        val (name, note) = segmentsOf(state)
        view<View>(R.id.tile_folded).showTile(
            getString(name),
            session?.let { Format.count(it.compressions) } ?: unknown,
            getString(note, segment),
        )
    }

    /** What becomes of segments that leave the window, in this artifact. */
    private fun segmentsOf(state: ChatUiState): Pair<Int, Int> =
        when {
            state.geometry.hasRecall -> R.string.memory_sifted to R.string.memory_sifted_note
            state.readsMemory -> R.string.memory_folded to R.string.memory_folded_note
            else -> R.string.memory_forgotten to R.string.memory_forgotten_note
        }

    private val Geometry?.hasRecall get() = this != null && mostSlots > 0

    private fun showCache(
        session: SessionFigures,
        geometry: Geometry,
        readsMemory: Boolean,
    ) {
        val sinks = minOf(session.cachedTokens, geometry.sinkLength)
        val newest = session.cachedTokens - sinks - session.recalledTokens
        val slots = listOf(sinks, session.recalledTokens, newest, geometry.capacity - session.cachedTokens)
        view<CacheBar>(R.id.cache).show(slots)
        view<TextView>(R.id.cache_legend).text = legend(slots, geometry.hasRecall)
        val folded = session.compressions * geometry.segmentLength - session.recalledTokens
        val gone = Format.count(folded)
        val recalled = Format.count(session.recalledTokens.toLong())
        val rest =
            when {
                folded == 0L -> getString(R.string.memory_exact)
                geometry.hasRecall && readsMemory -> getString(R.string.memory_sifted_folded, recalled, gone)
                geometry.hasRecall -> getString(R.string.memory_sifted_rest, recalled, gone)
                readsMemory -> getString(R.string.memory_compressed, gone)
                else -> getString(R.string.memory_dropped, gone)
            }
        view<TextView>(R.id.cache_note).text =
            getString(
                R.string.memory_cache_note,
                Format.count(session.cachedTokens.toLong()),
                Format.count(geometry.capacity.toLong()),
                rest,
            )
    }

    /** The bar's parts in words, each behind a dot of its colour. */
    private fun legend(
        slots: List<Int>,
        hasRecall: Boolean,
    ): CharSequence {
        val text = SpannableStringBuilder()
        LEGEND.forEachIndexed { index, label ->
            if (label == R.string.memory_recalled && !hasRecall) return@forEachIndexed
            if (text.isNotEmpty()) text.append("   ")
            val color = ForegroundColorSpan(getColor(CacheBar.COLORS[index]))
            text.append("\u25CF ", color, Spanned.SPAN_EXCLUSIVE_EXCLUSIVE)
            text.append(getString(label, Format.count(slots[index].toLong())).replace(' ', '\u00A0'))
        }
        return text
    }

    private fun showSpeed(state: ChatUiState) {
        val figures = state.figures
        val lines =
            listOf(
                Triple(R.id.line_ttft, R.string.memory_ttft, figures?.ttftS?.let(Format::seconds)),
                Triple(R.id.line_prefill, R.string.memory_prefill, figures?.prefillTokensPerS?.let(::rate)),
                Triple(R.id.line_decode, R.string.memory_decode, figures?.decodeTokensPerS?.let(::rate)),
                Triple(R.id.line_slowest, R.string.memory_slowest, figures?.slowestTokenS?.let(Format::seconds)),
            )
        for ((view, label, value) in lines) {
            view<View>(view).showLine(getString(label), value ?: getString(R.string.not_measured))
        }
    }

    private fun rate(value: Double) = getString(R.string.tokens_per_second, Format.rate(value))

    private companion object {
        /** As [CacheBar.COLORS]. */
        val LEGEND =
            listOf(
                R.string.memory_sinks,
                R.string.memory_recalled,
                R.string.memory_residual,
                R.string.memory_free,
            )
    }
}
