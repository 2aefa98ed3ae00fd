package io.edgeinfinite.app.ui.components

import android.content.Context
import android.graphics.Canvas
import android.graphics.Paint
import android.util.AttributeSet
import android.view.View
import io.edgeinfinite.app.R

/** Progress of reading, one cell per segment; a plain bar when there are too many to tell apart. */
class SegmentBar
@JvmOverloads
constructor(
    context: Context,
    attributes: AttributeSet? = null,
) : View(context, attributes) {
    private val full = paint(R.color.tertiary)
    private val empty = paint(R.color.tertiary).apply { alpha = EMPTY_ALPHA }
    private val gap = context.dp(GAP)
    private val narrowest = context.dp(NARROWEST)
    private var read = 0L
    private var total = 1L
    private var segment = 1L

    /** Shows [read] of [total] tokens in cells of [segment] tokens. */
    fun show(
        read: Long,
        total: Long,
        segment: Long,
    ) {
        this.read = read
        this.total = maxOf(1, total)
        this.segment = maxOf(1, segment)
        invalidate()
    }

    override fun onDraw(canvas: Canvas) {
        super.onDraw(canvas)
        val count = ((total + segment - 1) / segment).toInt()
        val cells = if (width / maxOf(1, count) > narrowest + gap) count else 1
        val perCell = if (cells == 1) total else segment
        // The last cell is as short as the last segment.
        val scale = (width - gap * (cells - 1)) / total.toFloat()
        var left = 0f
        for (cell in 0 until cells) {
            val tokens = minOf(perCell, total - cell * perCell)
            val right = left + tokens * scale
            val done = (read - cell * perCell).coerceIn(0, tokens)
            bar(canvas, left, right, empty)
            if (done > 0) bar(canvas, left, left + done * scale, full)
            left = right + gap
        }
    }

    private fun bar(
        canvas: Canvas,
        left: Float,
        right: Float,
        paint: Paint,
    ) {
        val radius = minOf(height / 2f, (right - left) / 2)
        canvas.drawRoundRect(left, 0f, right, height.toFloat(), radius, radius, paint)
    }

    private fun paint(color: Int) = Paint(Paint.ANTI_ALIAS_FLAG).also { it.color = context.getColor(color) }

    private companion object {
        const val EMPTY_ALPHA = 56
        const val GAP = 3f
        const val NARROWEST = 4f
    }
}
