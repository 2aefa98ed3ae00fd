import org.jetbrains.kotlin.abi.tools.AbiFilters
import org.jetbrains.kotlin.abi.tools.AbiToolsFactory
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource
import java.io.File
import java.util.ServiceLoader

/** Nobody changes what apps are compiled against without seeing it in a diff. */
class PublicApiTest {
    private val project = File(checkNotNull(System.getProperty("edgeinfinite.project")))

    @ParameterizedTest
    @ValueSource(strings = ["core", "runtime-onnx", "onnx-android"])
    fun `the public API is what its dump says`(module: String) {
        val found = dump(File(project, "ci/$module/target/classes"))
        assertTrue("public final class io/edgeinfinite/" in found, found)
        val kept = File(project, "$module/api/$module.api")
        if (System.getProperty("edgeinfinite.updateApi") == "true") {
            kept.parentFile.mkdirs()
            kept.writeText(found)
        }
        val expected = if (kept.exists()) kept.readText() else ""
        assertEquals(expected, found, "the API differs from $kept; if it should: build.sh api")
    }

    private fun dump(classes: File): String {
        val tools = ServiceLoader.load(AbiToolsFactory::class.java).single().get()
        val files = classes.walk().filter { it.extension == "class" }.sorted().toList()
        return buildString { tools.printJvmDump(this, files, AbiFilters.EMPTY) }
    }
}
