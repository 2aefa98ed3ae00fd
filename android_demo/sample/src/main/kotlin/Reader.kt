import io.edgeinfinite.core.GenerationEvent
import io.edgeinfinite.core.Model
import io.edgeinfinite.onnx.OnnxEngineFactory
import io.edgeinfinite.onnx.android.OnnxModels
import kotlinx.coroutines.runBlocking
import java.io.File

/** Reads a text and asks about it; may be called on the main thread. */
suspend fun answer(
    model: Model,
    text: String,
    question: String,
): String {
    val chat = model.newConversation()
    chat.attach("a text", text).collect { println("${it.read} of ${it.total} tokens read") }
    val answer = StringBuilder()
    chat.ask(question, maxNewTokens = 20).collect {
        if (it is GenerationEvent.Piece) answer.append(it.text)
    }
    chat.close()
    return answer.toString()
}

/** On a phone. */
suspend fun openOnAndroid(folder: File): Model = OnnxModels.open(folder)

/** On a desktop, where the build tries it: ARTIFACT TEXT QUESTION. */
fun main(arguments: Array<String>) =
    runBlocking {
        val (folder, text, question) = arguments
        val model = Model.open(File(folder), listOf(OnnxEngineFactory()))
        println("answer: " + answer(model, text, question))
        model.close()
    }
