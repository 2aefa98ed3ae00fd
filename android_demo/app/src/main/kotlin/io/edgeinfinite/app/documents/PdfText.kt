package io.edgeinfinite.app.documents

import com.tom_roush.pdfbox.io.MemoryUsageSetting
import com.tom_roush.pdfbox.pdmodel.PDDocument
import com.tom_roush.pdfbox.pdmodel.encryption.InvalidPasswordException
import com.tom_roush.pdfbox.text.PDFTextStripper
import io.edgeinfinite.app.Problem
import io.edgeinfinite.app.ProblemException
import io.edgeinfinite.app.R
import java.io.File
import java.io.IOException
import java.io.Writer

/**
 * The text of a PDF, page by page; of pages that are pictures there is none.
 *
 * `PDFBoxResourceLoader` must have been initialised, since tables of fonts are among the app's assets.
 */
internal object PdfText {
    /**
     * @param name the document's, for errors.
     * @param mostChars of text.
     * @throws ProblemException it needs a password, has no text, is damaged or too long.
     */
    fun of(
        name: String,
        file: File,
        mostChars: Long,
    ): Extracted {
        var left: Problem? = null
        val text = Limited { if (it > mostChars) throw DocumentReader.tooLong(name, mostChars) }
        try {
            val memory = MemoryUsageSetting.setupTempFileOnly().setTempDir(file.parentFile)
            PDDocument.load(file, memory).use { left = write(name, it, text) }
        } catch (_: InvalidPasswordException) {
            throw ProblemException(R.string.document_password, name)
        } catch (error: IOException) {
            throw DocumentReader.damaged(name, error)
        } catch (error: ProblemException) {
            throw error
        } catch (error: RuntimeException) { // what the library makes of some damaged files
            throw DocumentReader.damaged(name, error)
        } catch (_: LinkageError) { // encrypted for a certificate: that needs BouncyCastle, which the app leaves out
            throw ProblemException(R.string.document_password, name)
        } catch (error: StackOverflowError) {
            throw DocumentReader.damaged(name, IOException("it is nested too deeply", error))
        }
        if (text.written.isBlank()) throw ProblemException(R.string.document_scanned, name)
        return Extracted(DividedWords.rejoined(CleanText.tidied(text.written.toString())), left = left)
    }

    /** Writes page by page; one that is damaged is left out. */
    private fun write(
        name: String,
        document: PDDocument,
        text: Limited,
    ): Problem? {
        val left = ArrayList<Int>()
        for (page in 1..document.numberOfPages) {
            try {
                val stripper = PDFTextStripper()
                stripper.startPage = page
                stripper.endPage = page
                stripper.writeText(document, text)
            } catch (_: IOException) {
                left += page
            } catch (error: RuntimeException) {
                if (error is ProblemException) throw error
                left += page
            } catch (_: StackOverflowError) {
                left += page
            }
        }
        text.write(PdfForms.written(document))
        if (left.isEmpty()) return null
        if (left.size == document.numberOfPages) throw IOException("no page can be read")
        val told = listOf(name, "${left.size}", "${document.numberOfPages}", left.take(NAMED).joinToString())
        return Problem(R.string.document_left, told)
    }

    private const val NAMED = 5

    /** @param check is given the number of characters before each piece is added. */
    private class Limited(
        private val check: (Long) -> Unit,
    ) : Writer() {
        val written = StringBuilder()

        override fun write(
            characters: CharArray,
            from: Int,
            count: Int,
        ) {
            check(written.length.toLong() + count)
            written.append(characters, from, count)
        }

        override fun flush() = Unit

        override fun close() = Unit
    }
}
