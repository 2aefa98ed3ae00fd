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

    @Test
    fun `a document's text is Python's`() {
        val written = File(System.getProperty("edgeinfinite.fixtures"), "documents/cases.json")
        val cases = JSONArray(written.readText())
        val ours = StringBuilder()
        val theirs = StringBuilder()
        for (index in 0 until cases.length()) {
            val case = cases.getJSONObject(index)
            val name = case.getString("name")
            val file = folder.newFile("$index").apply { writeBytes(Base64.getDecoder().decode(case.getString("data"))) }
            ours.append("== $name $index\n").append(DocumentReader(MOST).read(name, file).text).append('\n')
            theirs.append("== $name $index\n").append(case.getString("text")).append('\n')
        }
        assertEquals(theirs.toString(), ours.toString())
    }

    private companion object {
        const val MOST = 10_000_000L
    }
}
