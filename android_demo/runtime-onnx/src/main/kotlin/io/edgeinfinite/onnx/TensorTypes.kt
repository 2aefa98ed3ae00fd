package io.edgeinfinite.onnx

import ai.onnxruntime.OnnxJavaType
import ai.onnxruntime.OnnxTensor
import ai.onnxruntime.OrtEnvironment
import ai.onnxruntime.OrtException
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode
import java.nio.ByteBuffer

/**
 * onnxruntime's name of one of numpy's types.
 *
 * @throws EdgeInfiniteException there is none here.
 */
internal fun javaTypeOf(dtype: String): OnnxJavaType =
    when (dtype) {
        "float32" -> OnnxJavaType.FLOAT
        "float64" -> OnnxJavaType.DOUBLE
        "float16" -> OnnxJavaType.FLOAT16
        "int64" -> OnnxJavaType.INT64
        "int32" -> OnnxJavaType.INT32
        "int16" -> OnnxJavaType.INT16
        "int8" -> OnnxJavaType.INT8
        "uint8" -> OnnxJavaType.UINT8
        "bool" -> OnnxJavaType.BOOL
        else -> throw EdgeInfiniteException(ErrorCode.ARTIFACT_NEWER, "unknown tensor type '$dtype'; update the app")
    }

/** Bytes of one element. */
internal fun elementBytes(dtype: String): Int = javaTypeOf(dtype).size

/** A tensor over [buffer]'s own memory. */
internal fun onnxTensor(
    dtype: String,
    shape: List<Int>,
    buffer: ByteBuffer,
): OnnxTensor {
    val sizes = LongArray(shape.size) { shape[it].toLong() }
    return OnnxTensor.createTensor(OrtEnvironment.getEnvironment(), buffer, sizes, javaTypeOf(dtype))
}

/** Runs [work], which computes the graph in [file]. */
internal fun computing(
    file: String,
    work: () -> Unit,
): Unit =
    try {
        work()
    } catch (error: OrtException) {
        throw EdgeInfiniteException(
            ErrorCode.ENGINE_FAILED,
            "onnxruntime can't compute $file: ${error.message.orEmpty().lineSequence().first()}",
            error,
        )
    }
