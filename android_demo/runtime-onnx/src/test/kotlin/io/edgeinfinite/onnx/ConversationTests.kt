package io.edgeinfinite.onnx

import io.edgeinfinite.core.Autosave
import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.EngineDispatcher
import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Sampler
import io.edgeinfinite.core.SamplingOptions
import io.edgeinfinite.core.Session
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.toList
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.TestInstance
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.nio.file.Path

/**
 * What tests of conversations share: an artifact, opened once for a class, and the engine's thread.
 *
 * @param name the artifact's, see [Recorded].
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class ConversationTests(
    name: String,
) {
    @TempDir
    lateinit var folder: Path

    protected val recorded = Recorded(name)
    protected val engine: Engine = recorded.engine()
    protected val tokenizer = recorded.tokenizer()
    protected val dispatcher = EngineDispatcher()

    @AfterAll
    fun close() {
        dispatcher.close()
        engine.close()
    }

    /** A file of the test's own. */
    protected fun file(name: String): File = folder.resolve(name).toFile()

    protected fun conversation(
        chunkLength: Int? = CHUNK,
        autosave: Autosave? = null,
        undoSteps: Int = 0,
        system: String? = null,
    ) = Conversation(Session(engine, chunkLength), tokenizer, dispatcher, autosave, undoSteps, system)

    protected suspend fun restored(file: File): Conversation =
        Conversation.restore(engine, tokenizer, file, dispatcher)

    protected fun greedy() = Sampler(SamplingOptions())

    /** Waits for the whole answer. */
    protected suspend fun Flow<GenerationEvent>.answer(): GenerationEvent.Finished =
        toList().last() as GenerationEvent.Finished
}

/** Tokens of a chunk: few, so that short texts are read in many. */
const val CHUNK = 5
