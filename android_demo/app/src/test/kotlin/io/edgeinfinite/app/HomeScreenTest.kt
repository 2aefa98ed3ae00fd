package io.edgeinfinite.app

import android.view.View
import io.edgeinfinite.app.ui.components.view
import io.edgeinfinite.app.ui.screens.HomeActivity
import org.junit.Assert.assertEquals
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner

/** The first screen. */
@RunWith(RobolectricTestRunner::class)
class HomeScreenTest {
    @Test
    fun `without a model it says how to make one`() {
        val activity = Robolectric.setupActivity(HomeActivity::class.java)
        val card = activity.view<View>(R.id.no_models)
        waitUntil { card.visibility == View.VISIBLE }
        assertEquals(View.GONE, activity.view<View>(R.id.chats_heading).visibility)
    }
}
