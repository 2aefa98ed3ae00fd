package io.edgeinfinite.app.ui.components

import android.content.Context
import android.graphics.Canvas
import android.graphics.Paint
import android.graphics.Path
import android.util.AttributeSet
import android.view.View
import io.edgeinfinite.app.R

/** The slots of the cache: sinks, newest tokens, free. */
class CacheBar
@JvmOverloads
constructor(
    context: Context,
    attributes: AttributeSet? = null,
) : View(context, attributes) {
    private val paint = Paint(Paint.ANTI_ALIAS_FLAG)
    private val outline = Path()
    private val colors =
        intArrayOf(R.color.primary, R.color.tertiary, R.color.outline_variant).map(context::getColor)
    private var parts = listOf(0f, 0f, 1f)

    /** Shows slots in use of [capacity]; they sum to at most that. */
    fun show(
        sinks: Int,
        residual: Int,
        capacity: Int,
    ) {
        val all = maxOf(1, capacity).toFloat()
        parts = listOf(sinks / all, residual / all, (all - sinks - residual) / all)
        invalidate()
    }

    override fun onSizeChanged(
        width: Int,
        height: Int,
        oldWidth: Int,
        oldHeight: Int,
    ) {
        super.onSizeChanged(width, height, oldWidth, oldHeight)
        val radius = context.dp(RADIUS)
        outline.reset()
        outline.addRoundRect(0f, 0f, width.toFloat(), height.toFloat(), radius, radius, Path.Direction.CW)
    }

    override fun onDraw(canvas: Canvas) {
        super.onDraw(canvas)
        canvas.save()
        canvas.clipPath(outline)
        var left = 0f
        parts.forEachIndexed { index, part ->
            paint.color = colors[index]
            val right = left + part * width
            canvas.drawRect(left, 0f, right, height.toFloat(), paint)
            left = right
        }
        canvas.restore()
    }

    private companion object {
        const val RADIUS = 8f
    }
}
