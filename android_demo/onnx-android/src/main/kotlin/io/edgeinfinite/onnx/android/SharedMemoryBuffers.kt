package io.edgeinfinite.onnx.android

import android.annotation.TargetApi
import android.os.Build
import android.os.SharedMemory
import android.system.ErrnoException
import io.edgeinfinite.core.BufferAllocator
import java.nio.ByteBuffer

/**
 * States in anonymous shared memory, outside the Java heap that `allocateDirect` takes from.
 *
 * The mapping lives as long as the buffer is reachable.
 */
@TargetApi(Build.VERSION_CODES.O_MR1)
public object SharedMemoryBuffers : BufferAllocator {
    override fun allocate(bytes: Int): ByteBuffer {
        if (bytes == 0) return ByteBuffer.allocateDirect(0)
        try {
            return SharedMemory.create("edgeinfinite-state", bytes).use { it.mapReadWrite() }
        } catch (error: ErrnoException) {
            throw OutOfMemoryError("$bytes bytes of shared memory: ${error.message}")
        }
    }

    /** This where the system has it, else the Java heap. */
    @JvmStatic
    public fun orDirect(): BufferAllocator =
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.O_MR1) this else BufferAllocator.Direct
}
