package io.edgeinfinite.app

import io.edgeinfinite.core.EngineFactory
import io.edgeinfinite.executorch.ExecuTorchEngineFactory
import io.edgeinfinite.onnx.OnnxEngineFactory

/** Both runtimes; nobody has run ExecuTorch on a device yet, so this is an app of its own. */
internal fun builtInEngines(): List<EngineFactory> = listOf(OnnxEngineFactory(), ExecuTorchEngineFactory())
