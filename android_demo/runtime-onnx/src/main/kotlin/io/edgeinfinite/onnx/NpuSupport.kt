package io.edgeinfinite.onnx

import io.edgeinfinite.core.Manifest

/** Whether an artifact's graphs can run on an NPU, and why not. */
public enum class NpuSupport {
    /** Artifact, device and runtime have it. */
    YES,

    /** The artifact was exported for the CPU. */
    CPU_ARTIFACT,

    /** The artifact was compiled for another chip than this device's. */
    OTHER_CHIP,

    /** This build of onnxruntime has no provider for it. */
    NO_PROVIDER,
    ;

    public companion object {
        /**
         * Before an artifact is opened: what stands in the way of running it on the NPU.
         *
         * @param soc the device's chip, Android's `Build.SOC_MODEL`, which may name a variant behind it;
         *   null where it isn't known (before Android 12), and then the driver decides.
         * @param hasProvider whether onnxruntime has the provider; asked for where null.
         */
        @JvmStatic
        @JvmOverloads
        public fun of(
            manifest: Manifest,
            soc: String?,
            hasProvider: Boolean? = null,
        ): NpuSupport {
            val npu = manifest.npu
            return when {
                npu == null -> CPU_ARTIFACT
                soc != null && !soc.startsWith(npu.soc, ignoreCase = true) -> OTHER_CHIP
                !(hasProvider ?: Npu.isBuiltIn()) -> NO_PROVIDER
                else -> YES
            }
        }
    }
}
