package io.edgeinfinite.app.ui.components

import android.content.Context
import android.util.TypedValue

/** Density-independent pixels in pixels. */
internal fun Context.dp(value: Float): Float =
    TypedValue.applyDimension(TypedValue.COMPLEX_UNIT_DIP, value, resources.displayMetrics)

/** The same, following the person's font size. */
internal fun Context.sp(value: Float): Float =
    TypedValue.applyDimension(TypedValue.COMPLEX_UNIT_SP, value, resources.displayMetrics)
