package io.edgeinfinite.onnx

import ai.onnxruntime.platform.Fp16Conversions
import io.edgeinfinite.core.Artifact
import io.edgeinfinite.core.Conversation
import io.edgeinfinite.core.Engine
import io.edgeinfinite.core.EngineSettings
import io.edgeinfinite.core.Session
import io.edgeinfinite.core.TextTokenizer
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.float
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder
import kotlin.math.abs

/** A tiny artifact and what Python's session made of a text with it; see tests/android/sessions.py. */
class Recorded(
    val name: String,
) {
    private val folder = File(fixtures, "sessions/$name")
    private val json: JsonObject = Json.parseToJsonElement(File(folder, "steps.json").readText()).jsonObject

    val artifact: File = File(folder, "artifact")

    /** How far ONNX Runtime 1.29 on this CPU may be from 1.31 in Python; see tests/android/sessions.py. */
    val tolerance: Float = json.getValue("tolerance").jsonPrimitive.float
    val chunkLength: Int? =
        json.getValue("chunk_length").takeIf { it !is JsonNull }?.jsonPrimitive?.int
    val steps: List<Step> = json.getValue("steps").jsonArray.map { Step(it.jsonObject) }

    /** One kind of reading. [logitsUntil]: how many rows of logits there were before it ended. */
    inner class Step(
        fields: JsonObject,
    ) {
        val kind: String = fields.getValue("kind").jsonPrimitive.content
        val tokens = fields.getValue("tokens").jsonArray.map { it.jsonPrimitive.int }.toIntArray()
        val state = File(folder, fields.getValue("state").jsonPrimitive.content)
        val tokensRead = fields.getValue("tokens_read").jsonPrimitive.int
        val compressions = fields.getValue("compressions").jsonPrimitive.int
        val logitsUntil = fields.getValue("logits_until").jsonPrimitive.int
    }

    fun engine(): Engine = OnnxEngine(runBlocking { Artifact.open(artifact) }, EngineSettings(threads = 1))

    fun tokenizer(): TextTokenizer = runBlocking { TextTokenizer.load(artifact) }

    /** Row [index] of the logits, `[V]`. */
    fun logits(
        index: Int,
        vocabulary: Int,
    ): FloatArray {
        val bytes = ByteBuffer.wrap(File(folder, "logits.f32").readBytes()).order(ByteOrder.LITTLE_ENDIAN)
        val values = bytes.asFloatBuffer()
        return FloatArray(vocabulary) { values.get(index * vocabulary + it) }
    }

    /** Where the Kotlin side's session files go, for Python to open. */
    fun output(file: String): File = File(fixtures, "kotlin/$name").apply { mkdirs() }.resolve(file)

    companion object {
        val fixtures = File(checkNotNull(System.getProperty("edgeinfinite.fixtures")))

        @JvmStatic
        fun names(): List<String> =
            checkNotNull(File(fixtures, "sessions").list()).sorted().also { check(it.size >= 4) }
    }
}

/** Closes the conversation afterwards. */
suspend inline fun <T> Conversation.use(work: (Conversation) -> T): T =
    try {
        work(this)
    } finally {
        close()
    }

/** Equal up to float32 rounding, measured against the largest magnitude. */
fun assertClose(
    expected: FloatArray,
    actual: FloatArray,
    what: String,
    tolerance: Float = TOLERANCE,
) {
    assertEquals(expected.size, actual.size, what)
    val limit = tolerance * maxOf(1f, expected.maxOfOrNull { abs(it) } ?: 0f)
    val worst = expected.indices.maxOfOrNull { abs(expected[it] - actual[it]) } ?: 0f
    assertTrue(worst <= limit, "$what: off by $worst, limit $limit")
}

/** Equal counters, tokens, M, z, and caches as far as they are in use. */
fun assertSameSession(
    expected: Session,
    actual: Session,
    what: String,
    tolerance: Float = TOLERANCE,
) {
    assertEquals(expected.tokensRead, actual.tokensRead, what)
    assertEquals(expected.compressions, actual.compressions, what)
    val lengths = { session: Session -> List(session.state.layers, session.state::lengthOf) }
    assertEquals(lengths(expected), lengths(actual), what)
    assertEquals(expected.residual.toIntArray().toList(), actual.residual.toIntArray().toList(), what)
    assertEquals(expected.unread.toIntArray().toList(), actual.unread.toIntArray().toList(), what)
    for (spec in expected.state.specs.filter { it.dtype in NUMBERS }) {
        assertClose(used(expected, spec.name), used(actual, spec.name), "$what: ${spec.name}", tolerance)
    }
}

/** A tensor's values; of a cache the slots in use, whichever axis they lie on. */
fun used(
    session: Session,
    name: String,
): FloatArray {
    val spec = session.state.specs.first { it.name == name }
    val buffer = session.state.buffer(name)
    val value: (Int) -> Float =
        when (spec.dtype) {
            "int8" -> { at -> buffer.get(at).toFloat() }
            "float16" -> buffer.asShortBuffer().let { values -> { Fp16Conversions.fp16ToFloat(values.get(it)) } }
            else -> buffer.asFloatBuffer().let { values -> { values.get(it) } }
        }
    if (!spec.isCache) return FloatArray(spec.shape.fold(1, Int::times), value)
    val axis = spec.dims.split(' ').indexOf("C")
    val inner = spec.shape.drop(axis + 1).fold(1, Int::times)
    val whole = spec.shape[axis] * inner
    val length = session.state.lengthOf(checkNotNull(spec.layer)) * inner
    val blocks = spec.shape.take(axis).fold(1, Int::times)
    return FloatArray(blocks * length) { value(it / length * whole + it % length) }
}

private val NUMBERS = setOf("float32", "float16", "int8")

/** Of float32 arithmetic. */
const val TOLERANCE = 1e-5f

/** Keys and values rounded to 11 bits: one on the edge of two may fall the other way. */
const val HALF_TOLERANCE = 4e-3f

/** Codes of an int8 cache: of 127, a few steps; `BYTE_TOLERANCE` of tests/android/sessions.py. */
const val BYTE_TOLERANCE = 0.04f

/** Graphs that compute in float16 throughout: `NPU_TOLERANCE` of tests/android/sessions.py. */
const val NPU_TOLERANCE = 0.02f
