package io.edgeinfinite.app.documents

import org.json.JSONArray
import org.junit.Assert.assertEquals
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import java.io.File
import java.util.Base64

/** Texts of documents as Python's readers give them; `tests/android/documents.py` wrote them. */
@RunWith(RobolectricTestRunner::class)
class SameTextTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val cases by lazy {
        val written = File(System.getProperty("edgeinfinite.fixtures"), "documents/cases.json")
        JSONArray(written.readText())
    }

    @Test
    fun `one text in every kind of document is one text`() {
        val same = List(KINDS.size) { cases.getJSONObject(it) }
        assertEquals(KINDS, same.map { it.getString("name") })
        val texts = same.map { read(it.getString("name"), it.getString("data")) }
        assertEquals(List(KINDS.size) { texts.first() }, texts)
    }

    @Test
    fun `a document's text is Python's`() {
        val ours = StringBuilder()
        val theirs = StringBuilder()
        for (index in 0 until cases.length()) {
            val case = cases.getJSONObject(index)
            val name = case.getString("name")
            ours.append("== $name $index\n").append(read(name, case.getString("data"))).append('\n')
            theirs.append("== $name $index\n").append(case.getString("text")).append('\n')
        }
        assertEquals(theirs.toString(), ours.toString())
    }

    private fun read(
        name: String,
        data: String,
    ): String {
        val file = File(folder.root, "copy").apply { writeBytes(Base64.getDecoder().decode(data)) }
        return DocumentReader(MOST).read(name, file).text
    }

    private companion object {
        val KINDS = listOf("a.txt", "a.md", "a.html", "a.epub", "a.docx")
        const val MOST = 10_000_000L
    }
}
