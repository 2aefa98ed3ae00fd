package io.edgeinfinite.app

import org.robolectric.RuntimeEnvironment
import java.io.File
import java.util.zip.ZipEntry
import java.util.zip.ZipOutputStream

/** The really exported tiny artifact that ci/app/fixtures.py wrote: a random Llama over bytes. */
internal object Fixture {
    /** Its name as a model. */
    const val MODEL = "tiny"

    /** The same, with answers that only a limit or a person ends. */
    const val ENDLESS = "endless"

    /** Its folder. */
    val artifact: File by lazy { folderOf(MODEL) }

    /** N of its geometry. */
    const val SEGMENT = 32

    /** Puts both where imported models are; answers are greedy, so that they can be compared. */
    fun install() {
        val settings = File(RuntimeEnvironment.getApplication().filesDir, "settings.json")
        settings.writeText("""{"sampling": {"temperature": 0.0, "topP": 0.95}}""")
        val models = File(RuntimeEnvironment.getApplication().filesDir, "models")
        for (name in listOf(MODEL, ENDLESS)) folderOf(name).copyRecursively(File(models, name))
    }

    private fun folderOf(name: String): File {
        val root = checkNotNull(System.getProperty("edgeinfinite.fixtures")) { "no edgeinfinite.fixtures" }
        val folder = File(root, "app/$name")
        check(folder.isDirectory) { "$folder is missing: run android_demo/ci/app/fixtures.py" }
        return folder
    }

    /**
     * A zip archive of it.
     *
     * @param change gives other contents or, with null, leaves a file out.
     * @param rename gives an entry's name.
     */
    fun zip(
        target: File,
        rename: (String) -> String = { it },
        change: (String, ByteArray) -> ByteArray? = { _, bytes -> bytes },
    ): File {
        ZipOutputStream(target.outputStream()).use { zip ->
            for (file in artifact.listFiles().orEmpty().sortedBy { it.name }) {
                val bytes = change(file.name, file.readBytes()) ?: continue
                zip.putNextEntry(ZipEntry(rename(file.name)))
                zip.write(bytes)
            }
        }
        return target
    }

    /** A text of about [bytes] bytes, which is as many of its tokens. */
    fun longText(bytes: Int): String =
        buildString {
            var line = 0
            while (length < bytes) append("Line ${line++}: the treasure was buried under the old windmill. ")
        }.take(bytes)
}
