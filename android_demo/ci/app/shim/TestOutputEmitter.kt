package androidx.test.internal.platform.util

object TestOutputEmitter {
    @JvmStatic
    fun dumpThreadStates(name: String) = Unit
}
