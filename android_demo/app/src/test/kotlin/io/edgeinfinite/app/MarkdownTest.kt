package io.edgeinfinite.app

import android.graphics.Typeface
import android.text.Spanned
import android.text.style.LeadingMarginSpan
import android.text.style.QuoteSpan
import android.text.style.StyleSpan
import android.text.style.TypefaceSpan
import android.text.style.URLSpan
import io.edgeinfinite.app.ui.format.Markdown
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner

/** Markdown as a model writes it. */
@RunWith(RobolectricTestRunner::class)
class MarkdownTest {
    private val markdown by lazy { Markdown(app) }

    private fun render(text: String) = markdown.render(text) as Spanned

    private inline fun <reified T> Spanned.marked(filter: (T) -> Boolean = { true }): List<String> =
        getSpans(0, length, T::class.java).filter(filter).map { substring(getSpanStart(it), getSpanEnd(it)) }

    @Test
    fun `headings, strong words and code have styles in place of marks`() {
        val text = render("## Result\n\nIt is **42**, *maybe*: `6 * 7`.\n\n```python\nprint(6 * 7)\n```")
        assertEquals("Result\n\nIt is 42, maybe: 6 * 7.\n\nprint(6 * 7)", text.toString())
        assertEquals(listOf("Result", "42"), text.marked<StyleSpan> { it.style == Typeface.BOLD })
        assertEquals(listOf("maybe"), text.marked<StyleSpan> { it.style == Typeface.ITALIC })
        assertEquals(listOf("6 * 7", "print(6 * 7)"), text.marked<TypefaceSpan>())
    }

    @Test
    fun `lists keep their numbers, nested ones are indented, quotes are marked`() {
        val text = render("Two:\n\n3. three\n4. four\n   - inner\n\n> said\n> so")
        assertEquals("Two:\n\n3. three\n4. four\n• inner\n\nsaid\nso", text.toString())
        val indented = text.marked<LeadingMarginSpan.Standard>()
        assertEquals(listOf("3. three", "4. four\n• inner", "• inner"), indented.sortedBy { text.indexOf(it) })
        assertEquals(listOf("said\nso"), text.marked<QuoteSpan>())
    }

    @Test
    fun `a link shows its address and can't be touched`() {
        val text = render("See [the docs](https://example.org/a) or <https://example.org/b>.")
        assertEquals("See the docs (https://example.org/a) or https://example.org/b.", text.toString())
        assertTrue(text.marked<URLSpan>().isEmpty())
    }

    @Test
    fun `what is no Markdown stays as it is, also half of it`() {
        for (plain in listOf("2 * 3 * 4 = 24", "one\ntwo", "<b>tag</b>", "open **bold", "a_b_c", "#1 is", "日本語")) {
            assertEquals(plain, render(plain).toString())
        }
        assertEquals("print(1", render("```\nprint(1").toString())
    }

    @Test
    fun `deeply nested marks are text, not a crash`() {
        for (text in listOf("> ".repeat(5_000), "*".repeat(20_000), "[".repeat(20_000), "- ".repeat(2_000) + "x")) {
            render(text)
        }
    }
}
