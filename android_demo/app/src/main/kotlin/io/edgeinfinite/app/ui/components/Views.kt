package io.edgeinfinite.app.ui.components

import android.app.Activity
import android.view.LayoutInflater
import android.view.View
import android.widget.LinearLayout

/** A view that the screen's layout has; `requireViewById` would need API 28. */
fun <T : View> Activity.view(id: Int): T = checkNotNull(findViewById<T>(id))

/** A view that is inside of this one. */
fun <T : View> View.view(id: Int): T = checkNotNull(findViewById<T>(id))

/** Makes rows of [layout], as many as [count], and keeps those that are there. */
fun LinearLayout.fill(
    count: Int,
    layout: Int,
    bind: (View, Int) -> Unit,
) {
    while (childCount > count) removeViewAt(childCount - 1)
    while (childCount < count) LayoutInflater.from(context).inflate(layout, this, true)
    for (index in 0 until count) bind(getChildAt(index), index)
}
