package io.edgeinfinite.core

import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import java.io.File

/** What tests/android/write_fixtures.py wrote. */
object Fixtures {
    val folder: File by lazy {
        val path = checkNotNull(System.getProperty("edgeinfinite.fixtures")) { "edgeinfinite.fixtures isn't set" }
        File(path).also { check(it.isDirectory) { "$it is missing; run tests/android/write_fixtures.py" } }
    }

    fun json(path: String): JsonElement = Json.parseToJsonElement(File(folder, path).readText())
}

/** An exported manifest without its own checksum, so that a test can change it. */
fun withoutOwnChecksum(manifest: String): String =
    manifest.replace(Regex(",\\s*\"own_sha256\": *\"[0-9a-f]{64}\""), "")
