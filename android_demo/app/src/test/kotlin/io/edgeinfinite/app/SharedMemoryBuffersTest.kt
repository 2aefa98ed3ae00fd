package io.edgeinfinite.app

import android.os.Build
import android.system.ErrnoException
import android.system.OsConstants
import io.edgeinfinite.core.BufferAllocator
import io.edgeinfinite.core.EdgeInfiniteException
import io.edgeinfinite.core.State
import io.edgeinfinite.core.TensorSpec
import io.edgeinfinite.onnx.android.SharedMemoryBuffers
import org.junit.Assert.assertEquals
import org.junit.Assert.assertSame
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.shadows.ShadowSharedMemory
import org.robolectric.util.ReflectionHelpers
import java.nio.ByteOrder

/** Memory of states outside the Java heap; how much of it the real system gives is not tested here. */
@RunWith(RobolectricTestRunner::class)
class SharedMemoryBuffersTest {
    private val specs =
        listOf(
            TensorSpec("k_cache_0", "float32", listOf(1, 2, 40, 8), "B K C D", "k_cache", 0),
            TensorSpec("v_cache_0", "float16", listOf(1, 2, 40, 8), "B K C D", "v_cache", 0),
            TensorSpec("length", "int64", listOf(1), "L", "length"),
            TensorSpec("has_memory", "float32", listOf(1), "1", "has_memory"),
        )

    @Test
    fun `a state lies in it, zeroed, in tensors of their own`() {
        State(specs, SharedMemoryBuffers).use { state ->
            for (spec in specs) {
                val buffer = state.buffer(spec.name)
                assertTrue(buffer.isDirect && buffer.order() == ByteOrder.nativeOrder())
                assertEquals(spec.bytes, buffer.capacity().toLong())
                assertTrue((0 until buffer.capacity()).all { buffer.get(it) == 0.toByte() })
            }
            state.buffer("k_cache_0").putFloat(0, 5f)
            state.setLengths { 7 }
            assertEquals(5f, state.buffer("k_cache_0").getFloat(0))
            assertEquals(7, state.lengthOf(0))
            assertEquals(0.toShort(), state.buffer("v_cache_0").getShort(0))
        }
    }

    @Test
    fun `too little of it is one clear message`() {
        ShadowSharedMemory.setCreateShouldThrow(ErrnoException("ashmem", OsConstants.ENOMEM))
        val error =
            try {
                assertThrows(EdgeInfiniteException::class.java) { State(specs, SharedMemoryBuffers) }
            } finally {
                ShadowSharedMemory.setCreateShouldThrow(null) // it outlives the test
            }
        assertTrue(error.message, "no memory for the state" in error.message!! && "\n" !in error.message!!)
    }

    @Test
    fun `Android 8_0, which has none, gets direct buffers`() {
        assertSame(SharedMemoryBuffers, SharedMemoryBuffers.orDirect())
        val real = Build.VERSION.SDK_INT
        ReflectionHelpers.setStaticField(Build.VERSION::class.java, "SDK_INT", Build.VERSION_CODES.O)
        try {
            assertSame(BufferAllocator.Direct, SharedMemoryBuffers.orDirect())
        } finally {
            ReflectionHelpers.setStaticField(Build.VERSION::class.java, "SDK_INT", real)
        }
    }
}
