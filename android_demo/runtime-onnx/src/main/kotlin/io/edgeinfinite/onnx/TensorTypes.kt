package io.edgeinfinite.onnx

import ai.onnxruntime.OnnxJavaType
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.ErrorCode

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
