package io.edgeinfinite.app.ui.components

import android.app.Activity
import android.view.View

/** A view that the screen's layout has; `requireViewById` would need API 28. */
fun <T : View> Activity.view(id: Int): T = checkNotNull(findViewById<T>(id))

/** A view that is inside of this one. */
fun <T : View> View.view(id: Int): T = checkNotNull(findViewById<T>(id))
