package io.edgeinfinite.onnx

import io.edgeinfinite.core.Accelerator
import io.edgeinfinite.core.Artifact
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.EngineSettings
import io.edgeinfinite.core.Manifest
import io.edgeinfinite.core.Session
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test
import java.io.File

/** Artifacts that were compiled for an NPU, on a machine without one. OnnxSessionTest reads them, too. */
class NpuTest {
    @Test
    fun `where there is no NPU the CPU computes the same artifact and says why`() {
        val artifact = opened("npu-reencode")
        OnnxEngine(artifact, EngineSettings(threads = 1, accelerator = Accelerator.NPU)).use { asked ->
            assertEquals(Accelerator.CPU, asked.accelerator)
            assertTrue("no provider" in asked.npuProblem.orEmpty(), asked.npuProblem)
            OnnxEngine(artifact, EngineSettings(threads = 1)).use { plain ->
                assertNull(plain.npuProblem)
                val tokens = IntArray(TOKENS) { 3 + it * 7 % (plain.vocabulary - 3) }
                val logits = listOf(asked, plain).map { engine -> Session(engine).use { it.append(tokens) } }
                assertArrayEquals(logits[0], logits[1])
            }
        }
    }

    @Test
    fun `an artifact for the CPU that is asked for on an NPU runs on the CPU and says why`() {
        val settings = EngineSettings(threads = 1, accelerator = Accelerator.NPU)
        OnnxEngine(opened("reencode"), settings).use {
            assertEquals("artifact was exported for the CPU", it.npuProblem)
        }
    }

    @Test
    fun `support is a matter of artifact, chip and runtime, in this order`() {
        val compiled = opened("npu-reencode").manifest
        assertEquals(NpuSupport.CPU_ARTIFACT, NpuSupport.of(opened("reencode").manifest, "SM8650", true))
        assertEquals(NpuSupport.OTHER_CHIP, NpuSupport.of(compiled, "SM8550", true))
        assertEquals(NpuSupport.NO_PROVIDER, NpuSupport.of(compiled, "SM8650", false))
        assertEquals(NpuSupport.NO_PROVIDER, NpuSupport.of(compiled, "SM8650"))
        for (soc in listOf("SM8650", "sm8650", "SM8650-AC", null)) {
            assertEquals(NpuSupport.YES, NpuSupport.of(compiled, soc, true))
        }
    }

    @Test
    fun `a manifest whose compiled file isn't listed is refused`() {
        assumeCompiled()
        val text = File(Recorded("npu-reencode").artifact, "manifest.json").readText()
        val broken =
            text
                .replace(Regex("\"own_sha256\": \"[0-9a-f]{64}\""), "\"own_sha256\": null")
                .replace("\"binary\": \"sm8650.bin\"", "\"binary\": \"gone.bin\"")
        val error = assertThrows(EdgeInfiniteException::class.java) { Manifest.parse(broken, "m") }
        assertTrue("gone.bin was compiled, but isn't among its files" in error.message.orEmpty(), error.message)
    }

    private fun opened(name: String): Artifact {
        if (name.startsWith("npu")) assumeCompiled()
        return runBlocking { Artifact.open(Recorded(name).artifact) }
    }

    /** The compiler is for Linux on x86-64 alone. */
    private fun assumeCompiled() =
        assumeTrue("npu-reencode" in Recorded.names(), "the package onnxruntime-qnn isn't installed")

    private companion object {
        const val TOKENS = 150
    }
}
