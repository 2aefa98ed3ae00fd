package io.edgeinfinite.app

import android.net.Uri
import io.edgeinfinite.core.Generator
import org.junit.Before
import org.junit.Rule
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import java.io.File

/**
 * What tests of an app with the fixture's models share.
 *
 * @param longest most tokens of an answer.
 */
@RunWith(RobolectricTestRunner::class)
abstract class AppTest(
    private val longest: Int = Generator.MAX_NEW_TOKENS,
) {
    @get:Rule
    val folder = TemporaryFolder()

    @Before
    fun installModels() {
        Fixture.install()
        answers(longest)
    }

    /** How long answers may be from now on, in tokens. */
    protected fun answers(longest: Int) = app.services.settings.update { it.copy(maxNewTokens = longest) }

    /** A text file of about [bytes] bytes, as a person picks it. */
    protected fun book(
        bytes: Int,
        name: String = "book.txt",
    ): Uri = PickedFiles.file(File(folder.root, name).apply { writeText(Fixture.longText(bytes)) })
}
