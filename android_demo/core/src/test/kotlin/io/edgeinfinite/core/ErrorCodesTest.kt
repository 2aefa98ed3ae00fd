package io.edgeinfinite.core

import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir
import java.io.ByteArrayInputStream
import java.io.File
import java.nio.file.Path

/** Every error says what kind it is, for an app's own words. */
class ErrorCodesTest {
    @TempDir
    lateinit var folder: Path

    private val artifact = File(Fixtures.folder, "sessions/reencode/artifact")

    @Test
    fun `no error of the libraries is without a code`() {
        val project = File(Fixtures.folder, "../..")
        val sources =
            listOf("core", "runtime-onnx", "runtime-executorch", "onnx-android").flatMap { module ->
                File(project, "$module/src/main").walk().filter { it.extension == "kt" }
            }
        val thrown = Regex("""[ =]EdgeInfiniteException\(\s*(\S+)""")
        var found = 0
        for (file in sources.filter { it.name != "EdgeInfiniteException.kt" }) {
            for (match in thrown.findAll(file.readText())) {
                found += 1
                assertTrue(match.groupValues[1].startsWith("ErrorCode."), "${file.name}: ${match.value}")
            }
        }
        assertTrue(found > 50, "$found errors in $project")
    }

    @Test
    fun `an error of the caller's own is another one`() =
        assertEquals(ErrorCode.OTHER, EdgeInfiniteException("the document has no text").code)

    @Test
    fun `artifacts are refused with the code of what is wrong`() {
        assertEquals(ErrorCode.NO_ARTIFACT, codeOf { File(it, MANIFEST_FILE).delete() })
        assertEquals(ErrorCode.ARTIFACT_DAMAGED, codeOf { File(it, "weights.data").appendText("x") }, "a longer file")
        assertEquals(ErrorCode.ARTIFACT_DAMAGED, codeOf { File(it, MANIFEST_FILE).writeText("{") }, "half a manifest")
        for ((version, code) in mapOf(1 to ErrorCode.ARTIFACT_OLDER, 99 to ErrorCode.ARTIFACT_NEWER)) {
            val changed =
                codeOf { copy ->
                    val manifest = File(copy, MANIFEST_FILE)
                    val schema = Regex("\"schema_version\": *$SCHEMA_VERSION")
                    manifest.writeText(schema.replace(manifest.readText(), "\"schema_version\": $version"))
                }
            assertEquals(code, changed)
        }
    }

    /** What opening a copy says after [change]. */
    private fun codeOf(change: (File) -> Unit): ErrorCode {
        val copy = folder.resolve("copy").toFile()
        copy.deleteRecursively()
        artifact.copyRecursively(copy)
        change(copy)
        return assertThrows<EdgeInfiniteException> { Artifact.read(copy, checkFiles = false) }.code
    }

    @Test
    fun `imports are refused with the code of what is wrong`() =
        runBlocking {
            val importer = ArtifactImporter(folder.resolve("models").toFile())
            val files = artifact.listFiles()!!.map { file -> SourceFile(file.name) { file.inputStream() } }
            importer.importFiles("t", files)
            val refusals =
                mapOf(
                    ErrorCode.NAME_TAKEN to assertThrows<EdgeInfiniteException> { importer.importFiles("t", files) },
                    ErrorCode.BAD_ARCHIVE to
                        assertThrows<EdgeInfiniteException> {
                            importer.importZip("u", ByteArrayInputStream(ByteArray(99)))
                        },
                    ErrorCode.UNREADABLE_SOURCE to
                        assertThrows<EdgeInfiniteException> {
                            importer.importFiles("u", listOf(SourceFile(MANIFEST_FILE) { throw SecurityException() }))
                        },
                    ErrorCode.STORAGE to
                        assertThrows<EdgeInfiniteException> {
                            ArtifactImporter(File(artifact, MANIFEST_FILE)).importFiles("u", files)
                        },
                )
            for ((code, error) in refusals) assertEquals(code, error.code, error.message)
        }
}
