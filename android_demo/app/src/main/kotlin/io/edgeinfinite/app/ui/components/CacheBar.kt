package io.edgeinfinite.app.ui.components

import android.content.Context
import android.graphics.Canvas
import android.graphics.Paint
import android.graphics.Path
import android.util.AttributeSet
import android.view.View
import io.edgeinfinite.app.R

/** The slots of the cache: sinks, recall slots, newest tokens, free. */
class CacheBar
@JvmOverloads
constructor(
    context: Context,
    attributes: AttributeSet? = null,
) : View(context, attributes) {
    private val paint = Paint(Paint.ANTI_ALIAS_FLAG)
    private val outline = Path()
    private val colors = COLORS.map(context::getColor)
    private var parts = emptyList<Float>()

    /** Shows how the slots are used: one number for each of [COLORS], in its order. */
    fun show(slots: List<Int>) {
        val all = maxOf(1, slots.sum()).toFloat()
        parts = slots.map { it / all }
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

    companion object {
        /** Of sinks, recall slots, newest tokens, free slots. */
        val COLORS = listOf(R.color.primary, R.color.secondary, R.color.tertiary, R.color.outline_variant)
        private const val RADIUS = 8f
    }
}
