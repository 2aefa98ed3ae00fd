package androidx.test.internal.platform

interface ThreadChecker {
    fun checkMainThread()

    fun checkNotMainThread()
}
