/** One thing at a time is at work in a conversation, and each can be stopped by itself. */

import { app, jobOf, tell } from "./app.js";
import { KeyWanted, Unreachable } from "./api.js";
import { askForKey, lost } from "./connection.js";
import { keep } from "./library.js";

const SAVED_EVERY = 1000;  // milliseconds, while an answer grows

/**
 * Runs an action that gets the job. Returns in words what went wrong, "" where nothing did and
 * null where the reader stopped it.
 */
export async function work(conversation, kind, action) {
  const job = { kind, controller: new AbortController(), began: performance.now(), saved: 0 };
  app.jobs.set(conversation.id, job);
  tell("list");
  tell("shown");
  let problem = "";
  try {
    await action(job);
  } catch (error) {
    problem = error.name === "AbortError" ? null : error.message;
    if (error instanceof Unreachable) lost();
    if (error instanceof KeyWanted) askForKey();
  }
  app.jobs.delete(conversation.id);
  return problem;
}

/** Shows and keeps how a job ended. */
export function ended(conversation) {
  if (app.conversations.has(conversation.id)) keep(conversation);  // unless it was deleted
  tell("list");
  tell("shown");
}

/** Keeps an answer that grows, now and then, so that a reload loses a second of it. */
export function keepSometimes(conversation, job) {
  if (performance.now() - job.saved < SAVED_EVERY) return;
  job.saved = performance.now();
  if (app.conversations.has(conversation.id)) keep(conversation);
}

export const stop = (conversation) => jobOf(conversation)?.controller.abort();
