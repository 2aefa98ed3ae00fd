package io.edgeinfinite.core

import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource
import java.io.ByteArrayInputStream
import java.io.ByteArrayOutputStream
import java.io.File
import java.io.IOException
import java.io.InputStream
import java.nio.file.Path
import java.util.zip.ZipEntry
import java.util.zip.ZipOutputStream

/** A really exported artifact comes in whole, or one clear message says why not. */
class ArtifactImporterTest {
    @TempDir
    lateinit var folder: Path

    private val artifact = File(Fixtures.folder, "sessions/reencode/artifact")

    /** What the manifest names; it leaves out the card, README.md, which is for readers. */
    private val files: Map<String, ByteArray> =
        checkNotNull(artifact.listFiles())
            .filter { it.name != "README.md" }
            .associate { it.name to it.readBytes() }
    private val importer by lazy { Waiting(ArtifactImporter(folder.resolve("models").toFile())) }

    /** The importer for tests, which wait for it. */
    private class Waiting(
        private val importer: ArtifactImporter,
    ) {
        val root: File get() = importer.root

        fun list() = runBlocking { importer.list() }

        fun delete(name: String) = runBlocking { importer.delete(name) }

        fun importZip(
            name: String,
            stream: InputStream,
            progress: ImportProgress = { _, _ -> },
        ) = runBlocking { importer.importZip(name, stream, progress) }

        fun importFiles(
            name: String,
            files: List<SourceFile>,
            progress: ImportProgress = { _, _ -> },
            cancelled: () -> Boolean = { false },
        ) = runBlocking { importer.importFiles(name, files, progress, cancelled) }
    }

    private fun zip(entries: Map<String, ByteArray>): InputStream {
        val bytes = ByteArrayOutputStream()
        ZipOutputStream(bytes).use { zip ->
            for ((name, contents) in entries) {
                zip.putNextEntry(ZipEntry(name))
                zip.write(contents)
            }
        }
        return ByteArrayInputStream(bytes.toByteArray())
    }

    private fun sources(files: Map<String, ByteArray>) =
        files.map { (name, bytes) -> SourceFile(name) { ByteArrayInputStream(bytes) } }

    private fun assertWhole(imported: Artifact) {
        Artifact.read(imported.folder, checkFiles = true)
        assertEquals(files.keys, imported.folder.list()!!.toSet())
        for ((name, bytes) in files) assertTrue(File(imported.folder, name).readBytes().contentEquals(bytes), name)
    }

    /** Refused with one line that says [reason], and nothing was left behind. */
    private fun assertRefused(
        reason: String,
        import: () -> Unit,
    ) {
        val error = assertThrows<EdgeInfiniteException> { import() }
        val message = error.message!!
        assertTrue(reason in message && '\n' !in message, message)
        assertTrue(importer.root.list().orEmpty().isEmpty(), importer.root.list()!!.toList().toString())
        assertTrue(importer.list().isEmpty())
    }

    @ParameterizedTest
    @ValueSource(strings = ["", "my-model/"])
    fun `a zip archive with the files at its top or in one folder is imported`(prefix: String) {
        var last = 0L
        val entries = files.mapKeys { prefix + it.key } + mapOf("__MACOSX/x" to ByteArray(3))
        assertWhole(importer.importZip("Tiny model (1)", zip(entries), { copied, _ -> last = copied }))
        assertEquals(files.values.sumOf { it.size.toLong() }, last)
        assertEquals(listOf("Tiny-model--1-"), importer.list().map { it.folder.name })
        assertEquals(null, importer.list().single().problem)
    }

    @Test
    fun `a folder is imported, without what the manifest doesn't name`() {
        val progress = ArrayList<Pair<Long, Long?>>()
        val more = files + ("holiday.jpg" to ByteArray(10))
        assertWhole(importer.importFiles("tiny", sources(more), { copied, total -> progress += copied to total }))
        assertEquals(progress.last().first, progress.last().second)
    }

    @Test
    fun `a zip's files that the manifest doesn't name are left out`() =
        assertWhole(importer.importZip("tiny", zip(files + ("notes.txt" to ByteArray(10)))))

    @Test
    fun `a flipped byte in any file is refused`() {
        for (name in files.keys - MANIFEST_FILE) {
            val bytes = files.getValue(name).copyOf()
            bytes[bytes.size / 2] = (bytes[bytes.size / 2].toInt() xor 1).toByte()
            assertRefused("$name differs") { importer.importZip("t", zip(files + (name to bytes))) }
            assertRefused("$name differs") { importer.importFiles("t", sources(files + (name to bytes))) }
        }
    }

    @Test
    fun `a truncated file is refused`() {
        val cut = files + ("weights.data" to files.getValue("weights.data").copyOf(100))
        assertRefused("has 100 bytes") { importer.importZip("t", zip(cut)) }
        assertRefused("has 100 bytes") { importer.importFiles("t", sources(cut)) }
    }

    @Test
    fun `a missing file is refused`() {
        for (name in files.keys - MANIFEST_FILE) {
            assertRefused("$name is missing") { importer.importZip("t", zip(files - name)) }
            assertRefused("$name is missing") { importer.importFiles("t", sources(files - name)) }
        }
        assertRefused("not an artifact") { importer.importZip("t", zip(files - MANIFEST_FILE)) }
        assertRefused("not an artifact") { importer.importFiles("t", sources(files - MANIFEST_FILE)) }
    }

    @ParameterizedTest
    @ValueSource(
        strings = [
            "../evil", "../../evil", "a/../../evil", "/etc/evil", "a/..", "C:\\evil", "a\\..\\..\\evil", "./evil",
            "a//evil", "",
        ],
    )
    fun `an archive entry that points outside its folder is refused`(name: String) {
        assertRefused("points outside") { importer.importZip("t", zip(files + (name to ByteArray(3)))) }
        assertFalse(File(folder.toFile(), "evil").exists())
    }

    @Test
    fun `a manifest that names a file outside its folder is refused`() {
        val exported = withoutOwnChecksum(files.getValue(MANIFEST_FILE).decodeToString())
        val manifest = exported.replace("\"tokenizer.json\"", "\"../evil.json\"")
        val changed = files + (MANIFEST_FILE to manifest.toByteArray())
        assertRefused("points outside") { importer.importZip("t", zip(changed)) }
        assertRefused("points outside") { importer.importFiles("t", sources(changed)) }
    }

    @ParameterizedTest
    @ValueSource(ints = [1, 99])
    fun `an older or newer schema is refused`(version: Int) {
        val manifest = files.getValue(MANIFEST_FILE).decodeToString()
        val other = Regex("\"schema_version\": *$SCHEMA_VERSION").replace(manifest, "\"schema_version\": $version")
        val changed = files + (MANIFEST_FILE to other.toByteArray())
        assertRefused("schema version $version") { importer.importZip("t", zip(changed)) }
        assertRefused("schema version $version") { importer.importFiles("t", sources(changed)) }
    }

    @ParameterizedTest
    @ValueSource(strings = ["", "{", "[]", "{\"schema_version\": 2}", "{\"schema_version\": \"x\"}", "null"])
    fun `a manifest that isn't one is refused`(text: String) {
        val changed = files + (MANIFEST_FILE to text.toByteArray())
        assertRefused("can't be read") { importer.importFiles("t", sources(changed)) }
    }

    @Test
    fun `two artifacts in one archive, and folders in one, are refused`() {
        val two = files.mapKeys { "a/" + it.key } + files.mapKeys { "b/" + it.key }
        assertRefused("more than one") { importer.importZip("t", zip(two)) }
        assertRefused("no folders") { importer.importZip("t", zip(files + ("a/b/c" to ByteArray(1)))) }
    }

    @Test
    fun `what isn't a zip archive, or only half of one, is refused`() {
        assertRefused("not a zip") { importer.importZip("t", ByteArrayInputStream(ByteArray(1000) { 7 })) }
        val whole = zip(files).readBytes()
        for (keep in listOf(0, 20, whole.size / 3, whole.size / 2)) {
            assertThrows<EdgeInfiniteException> { importer.importZip("t", ByteArrayInputStream(whole.copyOf(keep))) }
            assertTrue(importer.root.list().orEmpty().isEmpty())
        }
    }

    @Test
    fun `a stream that breaks leaves nothing behind`() {
        val broken =
            files.map { (name, bytes) ->
                SourceFile(name) {
                    if (name == "weights.data") BrokenStream(bytes) else ByteArrayInputStream(bytes)
                }
            }
        assertRefused("the card was pulled") { importer.importFiles("t", broken) }
    }

    private class BrokenStream(
        bytes: ByteArray,
    ) : InputStream() {
        private val source = ByteArrayInputStream(bytes, 0, bytes.size / 2)

        override fun read(): Int = source.read().also { if (it < 0) throw IOException("the card was pulled") }
    }

    @Test
    fun `a cancelled import leaves nothing behind`() {
        var copied = 0L
        assertThrows(ReadingCancelled::class.java) {
            importer.importFiles("t", sources(files), { bytes, _ -> copied = bytes }, { copied > 1000 })
        }
        assertTrue(importer.root.list().orEmpty().isEmpty())
    }

    @Test
    fun `an import whose coroutine is cancelled ends and leaves nothing behind`() =
        runBlocking {
            val root = folder.resolve("models").toFile()
            val importing =
                launch {
                    val endless = SourceFile("weights.data") { Endless }
                    val others = sources(files - "weights.data")
                    ArtifactImporter(root).importFiles("t", others + endless)
                }
            while (root.list().orEmpty().isEmpty()) yield()
            importing.cancelAndJoin()
            assertTrue(root.list()!!.isEmpty())
        }

    private object Endless : InputStream() {
        override fun read(): Int = 7

        override fun read(
            into: ByteArray,
            start: Int,
            count: Int,
        ): Int = count
    }

    @Test
    fun `a name that is taken is refused, and free again after deleting`() {
        importer.importZip("t", zip(files))
        val error = assertThrows<EdgeInfiniteException> { importer.importZip("t", zip(files)) }
        assertTrue("already" in error.message!!)
        importer.delete("t")
        assertTrue(importer.root.list()!!.isEmpty())
        assertWhole(importer.importZip("t", zip(files)))
    }

    @Test
    fun `what a killed import left is removed by the next one`() {
        File(importer.root, ".x.123.partial").mkdirs()
        File(importer.root, ".x.123.partial/manifest.json").writeText("{}")
        assertTrue(importer.list().isEmpty())
        importer.importZip("t", zip(files))
        assertEquals(listOf("t"), importer.root.list()!!.toList())
    }

    @Test
    fun `names can't lead out of the models' folder`() {
        for ((name, kept) in mapOf("../../x" to "x", "..." to "artifact", "a/b" to "a-b", "ä.zip" to "ä.zip")) {
            assertEquals(kept, importer.importZip(name, zip(files)).name)
            importer.delete(kept)
        }
    }

    @Test
    fun `an artifact altered later is refused on opening and named in the list`() {
        val imported = importer.importZip("t", zip(files))
        val weights = File(imported.folder, "weights.data")
        weights.writeBytes(weights.readBytes().also { it[5] = (it[5] + 1).toByte() })
        assertThrows<EdgeInfiniteException> { Artifact.read(imported.folder, checkFiles = true) }
        weights.delete()
        assertThrows<EdgeInfiniteException> { Artifact.read(imported.folder, checkFiles = false) }
        assertTrue("missing" in importer.list().single().problem!!)
    }

    @Test
    fun `a folder without a manifest is no artifact`() {
        val error = assertThrows<EdgeInfiniteException> { Artifact.read(folder.toFile(), checkFiles = true) }
        assertTrue("edgeinfinite export" in error.message!!)
    }
}
