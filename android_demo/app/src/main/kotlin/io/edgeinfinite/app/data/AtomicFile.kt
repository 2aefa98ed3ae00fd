package io.edgeinfinite.app.data

import java.io.File
import java.io.IOException

/**
 * Writes a small file so that a killed process leaves the old or the new one, never half of it.
 *
 * @throws IOException it can't be written.
 */
internal fun File.replaceText(text: String) {
    parentFile?.mkdirs()
    val partial = File("$path.partial")
    partial.outputStream().use { stream ->
        stream.write(text.encodeToByteArray())
        stream.fd.sync()
    }
    if (!partial.renameTo(this)) throw IOException("$name can't be replaced")
}
