package io.edgeinfinite.onnx

import io.edgeinfinite.core.Artifact
import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.EngineFactory
import io.edgeinfinite.core.EngineSettings
import io.edgeinfinite.core.State
import java.util.Collections

/** Without what debugging coroutines adds. */
fun threadName(): String = Thread.currentThread().name.substringBefore(" @")

/** The real engines, of which [onCall] hears every call while it is made. */
class Watched(
    private val onCall: (String) -> Unit = {},
) : EngineFactory {
    private val real = OnnxEngineFactory()

    /** Names of the threads that called, and what was called, in order. */
    val threads: MutableSet<String> = Collections.synchronizedSet(LinkedHashSet())
    val calls: MutableList<String> = Collections.synchronizedList(ArrayList())

    override val backend: String get() = real.backend

    override fun open(
        artifact: Artifact,
        settings: EngineSettings,
    ): Engine = called("open") { Seen(real.open(artifact, settings)) }

    private fun <T> called(
        name: String,
        call: () -> T,
    ): T {
        threads += threadName()
        calls += name
        onCall(name)
        return call()
    }

    private inner class Seen(
        private val engine: Engine,
    ) : Engine by engine {
        override fun newState(): State = called("newState") { engine.newState() }

        override fun prefillSegment(
            tokens: IntArray,
            state: State,
        ): FloatArray = called("prefillSegment") { engine.prefillSegment(tokens, state) }

        override fun decodeStep(
            token: Int,
            state: State,
        ): FloatArray = called("decodeStep") { engine.decodeStep(token, state) }

        override fun compressMemory(state: State) = called("compressMemory") { engine.compressMemory(state) }

        override fun close() = called("close") { engine.close() }
    }
}
