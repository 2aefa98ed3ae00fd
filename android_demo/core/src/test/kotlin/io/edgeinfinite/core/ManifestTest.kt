package io.edgeinfinite.core

import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import org.junit.jupiter.api.assertThrows
import java.io.File

/** A manifest that no export writes is one line, before anything that it names is opened. */
class ManifestTest {
    private val exported = File(Fixtures.folder, "sessions/reencode/artifact/$MANIFEST_FILE").readText()
    private val text = withoutOwnChecksum(exported)

    @TestFactory
    fun `what no export writes is refused`(): List<DynamicTest> =
        CHANGES.map { (old, new, reason) ->
            DynamicTest.dynamicTest(reason) {
                val changed = Regex(old, RegexOption.DOT_MATCHES_ALL).replaceFirst(text, new)
                assertTrue(changed != text, "nothing matches $old")
                val error = assertThrows<EdgeInfiniteException> { Manifest.parse(changed, MANIFEST_FILE) }
                assertTrue(reason in error.message!! && '\n' !in error.message!!, error.message)
            }
        }

    @Test
    fun `a manifest knows its own checksum`() {
        assertTrue(text != exported)
        assertEquals(Manifest.parse(text, MANIFEST_FILE), Manifest.parse(exported, MANIFEST_FILE))
        val renamed = exported.replace("\"tools\"", "\"tool5\"") // which no reader looks at
        assertTrue(renamed != exported)
        for (changed in listOf(renamed, "$exported ", exported.replace("own_sha256\": \"", "own_sha256\": \"0"))) {
            val error = assertThrows<EdgeInfiniteException> { Manifest.parse(changed, MANIFEST_FILE) }
            assertTrue("own_sha256" in error.message!!, error.message)
        }
    }

    @Test
    fun `mixes of one checkpoint have fingerprints of their own, the same as in Python`() {
        val cases = Fixtures.json("manifests/cases.json").jsonArray.map { it.jsonObject }
        val expected = cases.map { it.getValue("fingerprint").jsonPrimitive.content }
        assertEquals(cases.size, expected.toSet().size)
        val found = cases.map { Manifest.parse(it.getValue("manifest").jsonPrimitive.content, MANIFEST_FILE) }
        assertEquals(expected, found.map { it.fingerprint })
    }

    private companion object {
        /** What to replace, by what, and what the error says. */
        val CHANGES =
            listOf(
                Triple(".*", "[".repeat(100_000), "nested too deeply"),
                Triple("\"backend\"", "\"target\": \"cpu\", \"backend\"", "'target' stands in it twice"),
                Triple("\"file\": *\"[^\"]*\"", "\"file\": \"/etc/passwd\"", "points outside"),
                Triple("\"file\": *\"[^\"]*\"", "\"file\": \"other.onnx\"", "isn't among its files"),
                Triple("\"size\": *[0-9]+", "\"size\": -1", "has -1 bytes"),
                Triple("\"layers\": *[0-9]+", "\"layers\": 2000000000", "layers"),
                Triple("\"vocabulary\": *[0-9]+", "\"vocabulary\": 0", "0 vocabulary"),
                Triple("\"segment_length\": *[0-9]+", "\"segment_length\": 2147483647", "on the axis C"),
                Triple("\"recall_slots\": *0", "\"caches\": [[0, 0], [0, 1]]", "slots by head (geometry.caches)"),
                Triple("\"dtype\": *\"float32\"", "\"dtype\": \"float3\"", "unknown tensor type 'float3'"),
                Triple("\"dims\": *\"B K C D\"", "\"dims\": \"B Q C D\"", "has an axis 'Q'"),
                Triple("\"name\": *\"k_cache_0\"", "\"name\": \"k_cache_1\"", "two state tensors"),
                Triple("\"role\": *\"v_cache\"", "\"role\": \"k_cache\"", "one K and one V cache"),
                Triple("\"prefill_segment\": *\\{", "\"prefill\": {", "a graph is missing"),
                Triple("\"alias\": *\"k_cache_0\"", "\"alias\": \"k_cache_9\"", "isn't a state tensor"),
            )
    }
}
