/** Questions, and the answers as they are written. */

import { app, jobOf, tell } from "./app.js";
import { events, request as ask } from "./api.js";
import { add, isEmpty, path, request, withdraw } from "./conversation.js";
import { keep } from "./library.js";
import { parameters } from "./parameters.js";
import * as store from "./store.js";
import { announce } from "./toast.js";
import { titleOf } from "./words.js";
import { ended, keepSometimes, work } from "./jobs.js";

/** Asks at the end of what is shown. */
export function askNext(conversation, question) {
  if (jobOf(conversation)) return null;
  if (isEmpty(conversation) && !conversation.isNamed) conversation.title = titleOf(question);
  return answer(conversation, add(conversation, path(conversation).at(-1) ?? -1, "user", question));
}

/** Asks something else in a question's place; the question and what followed it stay a version. */
export function askInstead(conversation, place, question) {
  if (jobOf(conversation)) return null;
  return answer(conversation, add(conversation, conversation.messages[place].parent, "user",
    question));
}

/** Answers a question once more, or for the first time. */
export function answer(conversation, question) {
  if (jobOf(conversation)) return null;
  delete conversation.messages[question].problem;
  return write(conversation, add(conversation, question, "assistant", ""), question);
}

/** Goes on with an answer that was stopped, or that ended at its most tokens. */
export function goOn(conversation, place) {
  if (jobOf(conversation)) return null;
  delete conversation.messages[place].problem;
  return write(conversation, place, place);
}

/** Writes the answer at `place`, of a prompt whose last message stands at `last`. */
async function write(conversation, place, last) {
  const message = conversation.messages[place];
  message.finish = null;
  keep(conversation);
  const problem = await work(conversation, "answer", async (job) => {
    const said = { messages: request(conversation, last, await beginning(conversation)) };
    const response = await ask("/v1/chat/completions", {
      method: "POST", signal: job.controller.signal, headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        ...said, stream: true, stream_options: { include_usage: true }, return_progress: true,
        ...parameters(app.settings),
      }),
    });
    await take(conversation, message, job, events(response));
  });
  if (problem !== "") message.finish ??= "stopped";
  if (!message.content && !message.thought && message.finish === "stopped") {
    withdraw(conversation, place);
    conversation.messages[message.parent].problem = problem ?? "Stopped before it was answered.";
  } else if (problem) {
    message.problem = problem;
  }
  ended(conversation);
  announce(problem || (message.finish === "stopped" ? "Stopped." :
    `The answer: ${message.content.slice(0, 500)}`));
}

async function take(conversation, message, job, said) {
  let first = null, usage = null, pieces = 0;
  for await (const { choices: [choice], prompt_progress: read, usage: used } of said) {
    usage = used ?? usage;
    if (read) job.read = { ...read, seconds: read.time_ms / 1000 };
    const { content: piece, reasoning_content: thought } = choice?.delta ?? {};
    if (thought) message.thought = (message.thought ?? "") + thought;
    if (piece) message.content += piece;
    if (piece || thought) {
      first ??= performance.now();
      pieces += 1;
      keepSometimes(conversation, job);
    }
    message.finish = choice?.stop_reason ?? choice?.finish_reason ?? message.finish;
    tell(piece || thought ? "piece" : "progress", conversation);
  }
  if (!message.finish) throw new Error("The connection broke off amid the answer.");
  if (!usage) return;
  message.tokens = usage.total_tokens;
  message.figures = {
    cached: usage.prompt_tokens_details.cached_tokens,
    read: usage.prompt_tokens - usage.prompt_tokens_details.cached_tokens,
    first: ((first ?? performance.now()) - job.began) / 1000,
    rate: pieces > 1 ? (usage.completion_tokens - 1) / ((performance.now() - first) / 1000) : null,
  };
}

/** What stands before the first question: the document. */
async function beginning({ document }) {
  if (!document) return "";
  const kept = await store.get("documents", document.id);
  if (kept === undefined) throw new Error("This browser no longer has the document; open it again.");
  return kept.beginning;
}
