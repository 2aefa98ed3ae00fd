package io.edgeinfinite.core

import java.nio.ByteBuffer

private const val SIGN = 0x8000
private const val EXPONENT = 0x7C00
private const val MANTISSA = 0x03FF
private const val MANTISSA_BITS = 10
private const val NARROWER = 13
private const val BIAS = 112
private const val FLOAT_EXPONENT = 0x7F800000
private const val FLOAT_MANTISSA_BITS = 23
private const val FLOAT_ABSOLUTE = 0x7FFFFFFF
private const val QUIET = 0x7E00

/** 2^-14, the least normal half, as a float's bits. */
private const val LEAST_NORMAL = 0x38800000

/** 65,520, from which on halves are infinite, as a float's bits. */
private const val TOO_LARGE = 0x477FF000
private const val HALF_A_STEP = 0xFFF

/** What the last bit of a subnormal half is worth, 2^-24. */
private const val LAST_BIT = 1f / (1 shl 24)

/** A float's exponent and the bits to drop for a subnormal half make this sum. */
private const val DROPPED_BITS = 126

/** The number that an IEEE 754 half holds, exactly. Android has `Half`, the JVM has it from 20 on. */
internal fun halfToFloat(half: Short): Float {
    val bits = half.toInt()
    val sign = bits and SIGN shl Short.SIZE_BITS
    val exponent = bits and EXPONENT shr MANTISSA_BITS
    val mantissa = bits and MANTISSA
    return when (exponent) {
        0 -> Float.fromBits((mantissa * LAST_BIT).toRawBits() or sign)
        EXPONENT shr MANTISSA_BITS -> Float.fromBits(sign or FLOAT_EXPONENT or (mantissa shl NARROWER))
        else -> Float.fromBits(sign or (exponent + BIAS shl FLOAT_MANTISSA_BITS) or (mantissa shl NARROWER))
    }
}

/** The nearest half, of two equally near ones the even one; infinity where it is too large, as numpy. */
internal fun floatToHalf(value: Float): Short {
    val bits = value.toRawBits()
    val sign = bits ushr Short.SIZE_BITS and SIGN
    val absolute = bits and FLOAT_ABSOLUTE
    val half =
        when {
            absolute > FLOAT_EXPONENT -> QUIET
            absolute >= TOO_LARGE -> EXPONENT
            absolute < LEAST_NORMAL -> subnormalHalf(absolute)
            else -> {
                val even = absolute shr NARROWER and 1
                absolute + HALF_A_STEP + even - (BIAS shl FLOAT_MANTISSA_BITS) shr NARROWER
            }
        }
    return (sign or half).toShort()
}

/** The subnormal half nearest to a positive float with these bits, in whole numbers alone. */
private fun subnormalHalf(absolute: Int): Int {
    val dropped = DROPPED_BITS - (absolute ushr FLOAT_MANTISSA_BITS)
    if (dropped > FLOAT_MANTISSA_BITS + 1) return 0
    val one = 1 shl FLOAT_MANTISSA_BITS
    val mantissa = absolute and (one - 1) or one
    val half = mantissa ushr dropped
    val rest = mantissa and (1 shl dropped) - 1
    val middle = 1 shl dropped - 1
    return if (rest > middle || (rest == middle && half and 1 == 1)) half + 1 else half
}

/** Whether no number of a tensor of numpy's [dtype] is NaN or infinite. */
internal fun isFinite(
    dtype: String,
    data: ByteBuffer,
): Boolean =
    when (dtype) {
        "float32" -> data.asFloatBuffer().let { values ->
            (0 until values.capacity()).all { values.get(it).isFinite() }
        }
        // An exponent of all ones is infinity or NaN.
        "float16" ->
            data.asShortBuffer().let { values ->
                (0 until values.capacity()).none { values.get(it).toInt() and EXPONENT == EXPONENT }
            }
        else -> true
    }
