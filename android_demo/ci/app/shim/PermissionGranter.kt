package androidx.test.internal.platform.content

interface PermissionGranter {
    fun addPermissions(vararg permissions: String)

    fun requestPermissions()
}
