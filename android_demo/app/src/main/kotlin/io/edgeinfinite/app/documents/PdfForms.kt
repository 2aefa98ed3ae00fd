package io.edgeinfinite.app.documents

import com.tom_roush.pdfbox.pdmodel.PDDocument
import com.tom_roush.pdfbox.pdmodel.interactive.annotation.PDAnnotation
import com.tom_roush.pdfbox.pdmodel.interactive.form.PDButton
import com.tom_roush.pdfbox.pdmodel.interactive.form.PDChoice
import com.tom_roush.pdfbox.pdmodel.interactive.form.PDField
import com.tom_roush.pdfbox.pdmodel.interactive.form.PDPushButton
import com.tom_roush.pdfbox.pdmodel.interactive.form.PDTerminalField
import com.tom_roush.pdfbox.pdmodel.interactive.form.PDTextField
import java.io.IOException

/** What stands on a PDF's pages beside their own text: fields that were filled in, typed notes. */
internal object PdfForms {
    private const val FREE_TEXT = "FreeText"

    /** A line for each field with a value, `label: value`, and for each text typed on a page; "" if there is none. */
    fun written(document: PDDocument): String {
        val lines = ArrayList<String>()
        try {
            document.documentCatalog.getAcroForm(null)?.fieldTree?.mapNotNullTo(lines, ::line)
        } catch (_: IOException) { // damaged fields lose no page
        } catch (_: RuntimeException) {
        }
        for (page in document.pages) {
            try {
                page.annotations.filter(::isTyped).mapNotNullTo(lines) { it.contents }
            } catch (_: IOException) {
            } catch (_: RuntimeException) {
            }
        }
        val told = lines.filter { it.isNotBlank() }
        return if (told.isEmpty()) "" else told.joinToString("\n", "\n", "\n")
    }

    private fun isTyped(note: PDAnnotation) = note.subtype == FREE_TEXT && !note.isHidden && !note.isNoView

    private fun line(field: PDField): String? {
        if (field !is PDTerminalField || field.widgets.all { it.isHidden || it.isNoView }) return null
        val value = value(field)?.takeIf { it.isNotBlank() } ?: return null
        val label = (field.alternateFieldName ?: field.partialName).orEmpty().trim().trimEnd('.', ':')
        return if (label.isEmpty()) value else "$label: $value"
    }

    private fun value(field: PDTerminalField): String? =
        when (field) {
            is PDTextField -> if (field.isPassword) null else field.value
            is PDChoice -> field.value.joinToString()
            is PDPushButton -> null
            is PDButton -> field.value.takeIf { it != "Off" }
            else -> null
        }
}
