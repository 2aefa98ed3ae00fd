package io.edgeinfinite.core

import io.edgeinfinite.core.jinja.mostNanoseconds
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertTimeoutPreemptively
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.time.Duration
import java.util.concurrent.ExecutionException

/**
 * The corpus of tests/fuzz, and files changed at random: each is read or refused in one line, and
 * what Python refuses is refused here (tests/android/fuzzed.py says where the two may differ).
 */
class FuzzedFilesTest {
    @TempDir
    lateinit var scratch: File

    private val corpus = File(Fixtures.folder, "fuzz")

    @Test
    fun `manifests`() =
        check("manifest") { file ->
            val folder = File(scratch, "manifest").also { it.mkdirs() }
            file.copyTo(File(folder, MANIFEST_FILE), overwrite = true)
            // Nothing lies beside it: a whole manifest names files that are missing.
            val names = runCatching { Manifest.parse(file.readText(), file.name).files.keys }.getOrDefault(emptySet())
            Artifact.parseManifest(folder, names)
        }

    @Test
    fun `session files`() {
        val engines = filesOf("manifest/read").filter { it.name.startsWith("artifact-") }.map { StateOnly(it) }
        check("session") { file ->
            // As on a phone: a session is opened with the artifact that it belongs to.
            val restored =
                engines.firstNotNullOfOrNull { engine ->
                    val bytes = file.readBytes().toString(Charsets.ISO_8859_1)
                    if (engine.fingerprint in bytes) SessionFile.load(engine, file) else null
                } ?: SessionFile.load(engines.first(), file)
            SessionNotes.decode(restored.extra[SessionNotes.KEY])
        }
    }

    @Test
    fun `tokenizers`() = check("tokenizer") { use("tokenizer.json", it) }

    @Test
    fun `settings of tokenizers`() = check("tokenizer_config") { use("tokenizer_config.json", it) }

    @Test
    fun `generation settings`() = check("generation_config") { use("generation_config.json", it) }

    @Test
    fun `chat templates`() {
        val usual = mostNanoseconds
        try {
            check("chat_template") { file ->
                // Half of those that Python refuses have no end.
                val known = file.parentFile.name == "refused"
                mostNanoseconds = if (known) REFUSED_NANOSECONDS else MOST_NANOSECONDS
                use("chat_template.jinja", file)
            }
        } finally {
            mostNanoseconds = usual
        }
    }

    /** Loads a tokenizer with one file of its folder replaced, and uses it as a chat does. */
    private fun use(
        name: String,
        file: File,
    ) {
        val folder = File(scratch, name).also { it.mkdirs() }
        for ((kind, own) in TOKENIZER_FILES) {
            val whole = filesOf("$kind/read").first { it.name.startsWith("artifact-") }
            whole.copyTo(File(folder, own), overwrite = true)
        }
        file.copyTo(File(folder, name), overwrite = true)
        val tokenizer = TextTokenizer.read(folder, VOCABULARY)
        readConversationSampling(folder)
        tokenizer.encodeText("Two words, déjà vu.\n")
        val chat = listOf(Message("system", "Be brief."), Message("user", "a <|im_end|> bé\uD83E\uDD8A"))
        val ids = tokenizer.encodeChat(chat)
        val stream = tokenizer.stream()
        ids.forEach(stream::push)
        stream.flush()
        tokenizer.decode(ids)
        tokenizer.encodeTurn("More? <|im_start|>")
    }

    /** Reads every file of a kind. */
    private fun check(
        kind: String,
        read: (File) -> Unit,
    ) {
        val wrong = ArrayList<String>()
        var files = 0
        for (python in listOf("read", "refused", "either")) {
            for (file in filesOf("$kind/$python")) {
                files += 1
                val refusal = refusalOf(file, read)
                val line = refusal?.message.orEmpty()
                when {
                    refusal == null -> if (python == "refused") wrong += "${file.name}: only read here"
                    refusal !is EdgeInfiniteException ->
                        wrong += "${file.name}: $refusal at ${refusal.stackTrace.firstOrNull()}"
                    line.isEmpty() || '\n' in line -> wrong += "${file.name}: not one line: $line"
                    // Python has tokenizers of more kinds.
                    python == "read" && NOT_HERE !in line -> wrong += "${file.name}: only refused here: $line"
                }
            }
        }
        assertTrue(files > 20) { "$files files in $corpus" }
        assertEquals(emptyList<String>(), wrong, wrong.joinToString("\n"))
    }

    private fun refusalOf(
        file: File,
        read: (File) -> Unit,
    ): Throwable? =
        try {
            assertTimeoutPreemptively(MOST_TIME) { read(file) }
            null
        } catch (error: ExecutionException) {
            error.cause
        } catch (error: Throwable) { // of the file, or that it takes too long
            error
        }

    private fun filesOf(path: String): List<File> = File(corpus, path).listFiles().orEmpty().sorted()

    /** An engine without graphs: a session can be opened and looked at. */
    private class StateOnly(
        file: File,
    ) : Engine {
        private val manifest = Manifest.parse(file.readText(), file.name)
        override val name = "state"
        override val geometry = manifest.geometry
        override val vocabulary = manifest.backbone.vocabulary
        override val fingerprint = manifest.fingerprint
        override val modelDigest = manifest.modelDigest
        override val readsMemory = manifest.gate != null
        override val chunkLength = 1

        override fun newState() = State(manifest.state)

        override fun prefillSegment(
            tokens: IntArray,
            state: State,
        ): FloatArray = throw UnsupportedOperationException()

        override fun decodeStep(
            token: Int,
            state: State,
        ): FloatArray = throw UnsupportedOperationException()

        override fun compressMemory(state: State): Unit = throw UnsupportedOperationException()

        override fun close() = Unit
    }

    private companion object {
        const val VOCABULARY = 258
        const val MOST_NANOSECONDS = 500_000_000L
        const val REFUSED_NANOSECONDS = 50_000_000L
        const val NOT_HERE = "which this app doesn't have"
        val MOST_TIME: Duration = Duration.ofSeconds(30)
        val TOKENIZER_FILES =
            mapOf(
                "tokenizer" to "tokenizer.json",
                "tokenizer_config" to "tokenizer_config.json",
                "generation_config" to "generation_config.json",
                "chat_template" to "chat_template.jinja",
            )
    }
}
