package io.edgeinfinite.app.ui.components

import android.content.Context
import android.view.View
import android.widget.TextView
import io.edgeinfinite.app.R
import io.edgeinfinite.app.data.AnswerFigures
import io.edgeinfinite.app.ui.format.Format

/** The line below an answer; empty when nothing was measured. */
fun AnswerFigures.line(context: Context): String =
    listOfNotNull(
        ttftS?.let { context.getString(R.string.figures_ttft, Format.seconds(it)) },
        prefillTokensPerS?.let { context.getString(R.string.figures_prefill, Format.rate(it)) },
        decodeTokensPerS?.let { context.getString(R.string.figures_decode, Format.rate(it)) },
        when (end) {
            AnswerFigures.End.STOPPED -> context.getString(R.string.stopped)
            AnswerFigures.End.CUT -> context.getString(R.string.cut)
            AnswerFigures.End.REPEATED -> context.getString(R.string.repeated)
            null -> null
        },
    ).joinToString(" · ")

/** Fills a tile of the memory view; read out as one. */
fun View.showTile(
    label: String,
    value: String,
    note: String,
) {
    view<TextView>(R.id.label).text = label
    view<TextView>(R.id.value).text = value
    view<TextView>(R.id.note).text = note
    contentDescription = "$label: $value, $note"
}

/** Fills a line of a label and a figure; read out as one. */
fun View.showLine(
    label: String,
    value: String,
) {
    view<TextView>(R.id.label).text = label
    view<TextView>(R.id.value).text = value
    contentDescription = "$label: $value"
}
