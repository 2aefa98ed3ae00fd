package io.edgeinfinite.onnx

import ai.onnxruntime.OrtEnvironment
import ai.onnxruntime.OrtException
import ai.onnxruntime.OrtProvider
import ai.onnxruntime.OrtSession
import io.edgeinfinite.core.Accelerator
import io.edgeinfinite.core.Artifact
import io.edgeinfinite.core.EngineSettings
import java.io.File

/**
 * The sessions of an artifact's graphs on Snapdragon's NPU, if it was compiled for one.
 *
 * No device was at hand: that a driver takes the binary is not verified (docs/npu.md).
 */
internal class Npu(
    artifact: Artifact,
    settings: EngineSettings,
) {
    /** By graph; empty where the CPU computes. */
    val sessions: Map<String, OrtSession>

    /** Why it does, though the NPU was asked for. */
    val problem: String?

    init {
        val info = artifact.manifest.npu
        val opened = HashMap<String, OrtSession>()
        problem =
            when {
                settings.accelerator == Accelerator.CPU -> null
                info == null -> "${artifact.name} was exported for the CPU"
                !isBuiltIn() -> "this onnxruntime has no provider for Snapdragon's NPU"
                else ->
                    try {
                        for ((graph, file) in info.files) opened[graph] = open(File(artifact.folder, file))
                        null
                    } catch (error: OrtException) {
                        opened.values.forEach { it.close() }
                        opened.clear()
                        "the NPU's driver refuses ${artifact.name}, compiled for ${info.soc}: " +
                            error.message.orEmpty().lineSequence().first()
                    }
            }
        sessions = opened
    }

    companion object {
        /** Qualcomm's library for the HTP, from `com.qualcomm.qti:qnn-runtime`. */
        private const val LIBRARY = "libQnnHtp.so"

        /** Whether this build of onnxruntime has the provider. */
        fun isBuiltIn(): Boolean = OrtProvider.QNN in OrtEnvironment.getAvailableProviders()

        private fun open(file: File): OrtSession =
            OrtSession.SessionOptions().use { options ->
                options.setInterOpNumThreads(1)
                // What doesn't run on the NPU is an error, never silently the CPU's work.
                options.addConfigEntry("session.disable_cpu_ep_fallback", "1")
                options.addQnn(mapOf("backend_path" to LIBRARY, "offload_graph_io_quantization" to "0"))
                OrtEnvironment.getEnvironment().createSession(file.path, options)
            }
    }
}
