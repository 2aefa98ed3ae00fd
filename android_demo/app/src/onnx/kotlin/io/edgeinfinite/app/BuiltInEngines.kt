package io.edgeinfinite.app

import io.edgeinfinite.core.EngineFactory
import io.edgeinfinite.onnx.OnnxEngineFactory

/** ONNX Runtime alone. */
internal fun builtInEngines(): List<EngineFactory> = listOf(OnnxEngineFactory())
