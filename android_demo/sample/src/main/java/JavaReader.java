import io.edgeinfinite.core.EdgeInfiniteException;
import io.edgeinfinite.core.GenerationEvent;
import io.edgeinfinite.core.Sampler;
import io.edgeinfinite.core.async.AsyncModel;
import io.edgeinfinite.core.async.EventListener;
import io.edgeinfinite.onnx.OnnxEngineFactory;
import io.edgeinfinite.onnx.android.OnnxModels;
import java.io.File;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The same from Java: futures, and a listener that hears the answer on an executor of one's own. */
public final class JavaReader {
    /** Asks; the future has the answer. */
    static CompletableFuture<String> answer(AsyncModel model, String question) {
        CompletableFuture<String> answer = new CompletableFuture<>();
        Sampler sampler = new Sampler(model.getModel().getSampling());
        model.newConversation().thenAccept(chat -> chat.ask(question, sampler, new EventListener<GenerationEvent>() {
            @Override
            public void onEvent(GenerationEvent event) {
                if (event instanceof GenerationEvent.Finished) {
                    answer.complete(((GenerationEvent.Finished) event).getText());
                }
            }

            @Override
            public void onError(Throwable error) {
                answer.completeExceptionally(error);
            }
        }, 20));
        return answer;
    }

    /** On a phone; mainExecutor is the context's. */
    static CompletableFuture<AsyncModel> openOnAndroid(File folder, Executor mainExecutor) {
        return OnnxModels.openAsync(folder, mainExecutor);
    }

    /** On a desktop, where the build tries it: ARTIFACT QUESTION. */
    public static void main(String[] arguments) throws Exception {
        ExecutorService callbacks = Executors.newSingleThreadExecutor();
        AsyncModel model =
            AsyncModel.open(new File(arguments[0]), List.of(new OnnxEngineFactory()), callbacks).get();
        System.out.println("answer: " + answer(model, arguments[1]).get());
        model.close().get();
        callbacks.shutdown();
        try {
            new Sampler(new io.edgeinfinite.core.SamplingOptions(-1.0));
        } catch (EdgeInfiniteException error) { // unchecked
            System.out.println("refused: " + error.getCode());
        }
    }
}
