package io.edgeinfinite.app.ui.format

import android.content.Context
import android.graphics.Typeface
import android.text.SpannableStringBuilder
import android.text.Spanned
import android.text.style.BackgroundColorSpan
import android.text.style.LeadingMarginSpan
import android.text.style.QuoteSpan
import android.text.style.RelativeSizeSpan
import android.text.style.StyleSpan
import android.text.style.TypefaceSpan
import android.text.style.UnderlineSpan
import io.edgeinfinite.app.R
import org.commonmark.node.AbstractVisitor
import org.commonmark.node.BlockQuote
import org.commonmark.node.BulletList
import org.commonmark.node.Code
import org.commonmark.node.Emphasis
import org.commonmark.node.FencedCodeBlock
import org.commonmark.node.HardLineBreak
import org.commonmark.node.Heading
import org.commonmark.node.HtmlBlock
import org.commonmark.node.HtmlInline
import org.commonmark.node.IndentedCodeBlock
import org.commonmark.node.Link
import org.commonmark.node.ListBlock
import org.commonmark.node.ListItem
import org.commonmark.node.OrderedList
import org.commonmark.node.Paragraph
import org.commonmark.node.SoftLineBreak
import org.commonmark.node.StrongEmphasis
import org.commonmark.node.Text
import org.commonmark.node.ThematicBreak
import org.commonmark.parser.Parser

/**
 * Markdown as styled text.
 *
 * Nothing in it can be touched: a model's links may lead anywhere, so they show their address.
 */
class Markdown(
    private val context: Context,
) {
    private val parser = Parser.builder().build()

    /** The text with styles in place of Markdown's marks. */
    fun render(text: String): CharSequence = Writer().apply { parser.parse(text).accept(this) }.out

    private inner class Writer : AbstractVisitor() {
        val out = SpannableStringBuilder()
        private val code = context.getColor(R.color.surface_container_high)
        private val quote = context.getColor(R.color.outline)
        private val indent = (INDENT_DP * context.resources.displayMetrics.density).toInt()

        override fun visit(node: Paragraph) {
            begin(isTight = (node.parent?.parent as? ListBlock)?.isTight == true)
            visitChildren(node)
        }

        override fun visit(node: Heading) {
            begin()
            val size = HEADINGS.getOrElse(node.level - 1) { 1f }
            styled(StyleSpan(Typeface.BOLD), RelativeSizeSpan(size)) { visitChildren(node) }
        }

        override fun visit(node: BulletList) = visitChildren(node)

        override fun visit(node: OrderedList) = visitChildren(node)

        override fun visit(node: ListItem) {
            val list = node.parent as ListBlock
            // The first item stands apart from the paragraph before the list, except in a nested one.
            val isFirst = node.previous == null
            val isNested = list.parent is ListItem
            begin(isTight = if (isFirst) isNested else list.isTight)
            val mark = if (list is OrderedList) "${(list.markerStartNumber ?: 1) + indexOf(node)}. " else "• "
            styled(LeadingMarginSpan.Standard(if (isNested) indent else 0, indent)) {
                out.append(mark)
                isMarked = true
                visitChildren(node)
            }
        }

        override fun visit(node: BlockQuote) {
            begin()
            isMarked = true
            styled(QuoteSpan(quote)) { visitChildren(node) }
        }

        override fun visit(node: FencedCodeBlock) = block(node.literal.orEmpty())

        override fun visit(node: IndentedCodeBlock) = block(node.literal.orEmpty())

        override fun visit(node: HtmlBlock) {
            begin()
            out.append(node.literal.orEmpty())
        }

        override fun visit(node: ThematicBreak) {
            begin()
            out.append("———")
        }

        override fun visit(node: Text) {
            out.append(node.literal)
        }

        override fun visit(node: HtmlInline) {
            out.append(node.literal)
        }

        // Models end lines where they mean a new one.
        override fun visit(node: SoftLineBreak) {
            out.append('\n')
        }

        override fun visit(node: HardLineBreak) {
            out.append('\n')
        }

        override fun visit(node: Emphasis) = styled(StyleSpan(Typeface.ITALIC)) { visitChildren(node) }

        override fun visit(node: StrongEmphasis) = styled(StyleSpan(Typeface.BOLD)) { visitChildren(node) }

        override fun visit(node: Code) =
            styled(TypefaceSpan(MONOSPACE), BackgroundColorSpan(code)) { out.append(node.literal) }

        override fun visit(node: Link) {
            val start = out.length
            styled(UnderlineSpan()) { visitChildren(node) }
            val address = node.destination.orEmpty()
            if (address.isNotEmpty() && address != out.substring(start)) out.append(" (").append(address).append(')')
        }

        /** What follows stands right behind a list's mark. */
        private var isMarked = false

        private fun begin(isTight: Boolean = false) {
            if (out.isNotEmpty() && !isMarked) out.append(if (isTight) "\n" else "\n\n")
            isMarked = false
        }

        private fun block(text: String) {
            begin()
            styled(TypefaceSpan(MONOSPACE), BackgroundColorSpan(code)) { out.append(text.trimEnd('\n')) }
        }

        private fun styled(
            vararg spans: Any,
            write: () -> Unit,
        ) {
            val start = out.length
            write()
            if (out.length == start) return
            for (span in spans) out.setSpan(span, start, out.length, Spanned.SPAN_EXCLUSIVE_EXCLUSIVE)
        }

        private fun indexOf(item: ListItem): Int = generateSequence(item.previous) { it.previous }.count()
    }

    private companion object {
        const val INDENT_DP = 20f
        const val MONOSPACE = "monospace"
        val HEADINGS = listOf(1.3f, 1.2f, 1.1f)
    }
}
