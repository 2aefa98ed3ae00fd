package io.edgeinfinite.app

import io.edgeinfinite.core.EngineFactory
import io.edgeinfinite.executorch.ExecuTorchEngineFactory
import io.edgeinfinite.onnx.OnnxEngineFactory

/** The runtimes whose native libraries the APK carries. */
internal fun builtInEngines(): List<EngineFactory> = listOf(OnnxEngineFactory(), ExecuTorchEngineFactory())
