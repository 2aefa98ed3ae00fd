package io.edgeinfinite.app.ui.components

import android.content.Context
import android.graphics.Canvas
import android.graphics.Paint
import android.graphics.Path
import android.util.AttributeSet
import android.view.View
import io.edgeinfinite.app.R
import io.edgeinfinite.app.ui.format.Format
import io.edgeinfinite.app.ui.viewmodel.MemoryPoint

/** Bytes over tokens read: the app's memory above, where it is known, the state as a flat line below. */
class MemoryChart
@JvmOverloads
constructor(
    context: Context,
    attributes: AttributeSet? = null,
) : View(context, attributes) {
    private val app = line(R.color.primary)
    private val state = line(R.color.tertiary)
    private val grid =
        Paint().apply {
            color = context.getColor(R.color.outline_variant)
            strokeWidth = context.dp(1f)
        }
    private val text =
        Paint(Paint.ANTI_ALIAS_FLAG).apply {
            color = context.getColor(R.color.on_surface_variant)
            textSize = context.sp(LABEL)
        }
    private val path = Path()
    private var points = emptyList<MemoryPoint>()
    private val knowsApp get() = points.all { it.appBytes != null }

    /** Shows a reading's course; nothing but a hint for fewer than two points. */
    fun show(points: List<MemoryPoint>) {
        if (points == this.points) return
        this.points = points
        contentDescription = describe(points)
        invalidate()
    }

    override fun onDraw(canvas: Canvas) {
        super.onDraw(canvas)
        if (points.size < 2) {
            text.textAlign = Paint.Align.CENTER
            canvas.drawText(context.getString(R.string.memory_chart_empty), width / 2f, height / 2f, text)
            return
        }
        val line = text.textSize * LINE
        val plot = Plot(points, this, line, text.measureText(WIDEST) + context.dp(SPACE))
        drawLegend(canvas, paddingTop + text.textSize)
        drawGrid(canvas, plot)
        if (knowsApp) drawLine(canvas, plot, app) { it.appBytes ?: 0 }
        drawLine(canvas, plot, state) { it.stateBytes }
    }

    private fun drawLegend(
        canvas: Canvas,
        baseline: Float,
    ) {
        var left = paddingLeft.toFloat()
        text.textAlign = Paint.Align.LEFT
        val lines = listOfNotNull((app to R.string.memory_app).takeIf { knowsApp }, state to R.string.memory_state)
        for ((paint, label) in lines) {
            val middle = baseline - text.textSize / 3
            canvas.drawLine(left, middle, left + context.dp(SWATCH), middle, paint)
            left += context.dp(SWATCH + SPACE)
            val name = context.getString(label)
            canvas.drawText(name, left, baseline, text)
            left += text.measureText(name) + context.dp(2 * SPACE)
        }
    }

    private fun drawGrid(
        canvas: Canvas,
        plot: Plot,
    ) {
        for (step in 0..STEPS) {
            val bytes = plot.top * step / STEPS
            val y = plot.y(bytes)
            canvas.drawLine(plot.left, y, plot.right, y, grid)
            text.textAlign = Paint.Align.RIGHT
            val right = (width - paddingRight).toFloat()
            canvas.drawText(Format.bytes(bytes), right, y + text.textSize / 3, text)
        }
        val below = plot.bottom + text.textSize * LINE
        text.textAlign = Paint.Align.LEFT
        canvas.drawText(Format.count(plot.first), plot.left, below, text)
        text.textAlign = Paint.Align.RIGHT
        canvas.drawText(
            "${Format.count(plot.last)} ${context.getString(R.string.strip_read)}",
            plot.right,
            below,
            text,
        )
    }

    private fun drawLine(
        canvas: Canvas,
        plot: Plot,
        paint: Paint,
        value: (MemoryPoint) -> Long,
    ) {
        path.reset()
        points.forEachIndexed { index, point ->
            val x = plot.x(point.tokensRead)
            val y = plot.y(value(point))
            if (index == 0) path.moveTo(x, y) else path.lineTo(x, y)
        }
        canvas.drawPath(path, paint)
    }

    private fun describe(points: List<MemoryPoint>): String {
        if (points.isEmpty()) return context.getString(R.string.memory_chart_empty)
        val state = Format.bytes(points.last().stateBytes)
        val app = points.mapNotNull { it.appBytes }
        if (app.size < points.size) return context.getString(R.string.memory_chart_description_state, state)
        return context.getString(
            R.string.memory_chart_description,
            Format.bytes(app.min()),
            Format.bytes(app.max()),
            state,
        )
    }

    private fun line(colorId: Int) =
        Paint(Paint.ANTI_ALIAS_FLAG).apply {
            color = context.getColor(colorId)
            style = Paint.Style.STROKE
            strokeWidth = context.dp(STROKE)
            strokeCap = Paint.Cap.ROUND
            strokeJoin = Paint.Join.ROUND
        }

    /** Where tokens and bytes are on the screen. */
    private class Plot(
        points: List<MemoryPoint>,
        view: View,
        line: Float,
        gutter: Float,
    ) {
        val left = view.paddingLeft.toFloat()
        val right = view.width - view.paddingRight - gutter
        val bottom = view.height - view.paddingBottom - line
        val first = points.first().tokensRead
        val last = points.last().tokensRead
        val top = roundUp(points.maxOf { maxOf(it.appBytes ?: 0, it.stateBytes) })
        private val ceiling = view.paddingTop + 2 * line

        fun x(tokens: Long) = left + (right - left) * (tokens - first) / maxOf(1, last - first)

        fun y(bytes: Long) = bottom - (bottom - ceiling) * bytes / top

        /** The next of 1, 2, 4, 6, 8, 10 times a power of ten. */
        private fun roundUp(bytes: Long): Long {
            var power = 1L
            while (power * 10 <= bytes) power *= 10
            return listOf(1, 2, 4, 6, 8, 10).map { it * power }.first { it >= bytes }
        }
    }

    private companion object {
        const val LABEL = 12f
        const val LINE = 1.5f
        const val SWATCH = 16f
        const val SPACE = 8f
        const val STROKE = 2.5f
        const val STEPS = 2
        const val WIDEST = "000 MB"
    }
}
