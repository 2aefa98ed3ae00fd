package io.edgeinfinite.app.ui.components

import android.os.Build
import android.view.View
import android.view.WindowInsets

/**
 * Keeps a screen's content clear of the system's bars, the cutout and the keyboard.
 *
 * From targetSdk 35 on the window reaches under all of them.
 */
fun View.padForSystemBars() {
    setOnApplyWindowInsetsListener { view, insets ->
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.R) {
            val kinds =
                WindowInsets.Type.systemBars() or
                    WindowInsets.Type.displayCutout() or
                    WindowInsets.Type.ime()
            val bars = insets.getInsets(kinds)
            view.setPadding(bars.left, bars.top, bars.right, bars.bottom)
            WindowInsets.CONSUMED
        } else {
            @Suppress("DEPRECATION")
            view.setPadding(
                insets.systemWindowInsetLeft,
                insets.systemWindowInsetTop,
                insets.systemWindowInsetRight,
                insets.systemWindowInsetBottom,
            )
            @Suppress("DEPRECATION")
            insets.consumeSystemWindowInsets()
        }
    }
    requestApplyInsets()
}
