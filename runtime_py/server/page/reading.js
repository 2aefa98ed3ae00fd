/** Documents: each opens a conversation of its own, and is read before the first question. */

import { app, jobOf, tell } from "./app.js";
import { lines, request } from "./api.js";
import { newConversation, newId } from "./conversation.js";
import { keep, show } from "./library.js";
import * as store from "./store.js";
import { announce } from "./toast.js";
import { bytes } from "./words.js";
import { ended, work } from "./jobs.js";

const LONGEST_ADDRESS = 8000;  // characters of a system prompt that a request's first line bears

/** Opens files, each in a conversation beside the others, and shows the first. */
export async function openDocuments(files) {
  const opened = [];
  for (const file of files) {
    const conversation = newConversation(app.current.document ? app.settings.system :
      app.current.system);
    conversation.title = file.name;
    conversation.document = { id: newId(), name: file.name, notes: [], isRead: false };
    // The file itself, until it is read: a reload or a stop can then go on with it.
    await store.put("documents", conversation.document.id, { file });
    await keep(conversation);
    opened.push(conversation);
  }
  if (opened.length) show(opened[0]);
  await Promise.all(opened.map(readDocument));
}

/** Reads a conversation's document, from where the server has it. */
export async function readDocument(conversation) {
  if (jobOf(conversation)) return;
  const { document } = conversation;
  delete document.problem;
  const problem = await work(conversation, "reading", async (job) => {
    const { file } = await store.get("documents", document.id) ?? {};
    if (!file) throw new Error("This browser no longer has the file; open it again.");
    const most = app.about?.edgeinfinite.largest_document ?? Infinity;
    if (file.size > most) {
      throw new Error(`The file has ${bytes(file.size)}; the server takes ${bytes(most)}.`);
    }
    const beginning = await read(conversation, job, file);
    if (beginning === null) throw new Error("The connection broke off amid the document.");
    await store.put("documents", document.id, { beginning });
    document.isRead = true;
  });
  if (problem !== "") document.problem = problem ?? "Stopped.";
  ended(conversation);
  announce(problem || (document.isRead ? `${document.name} is read. Ask about it.` : "Stopped."));
}

async function read(conversation, job, file) {
  const { document, system } = conversation;
  const asked = new URLSearchParams({ name: file.name });
  if (system && encodeURIComponent(system).length < LONGEST_ADDRESS) asked.set("system", system);
  const response = await request(`/documents?${asked}`, {
    method: "POST", body: file, signal: job.controller.signal,
  });
  let beginning = null;
  for await (const line of lines(response)) {
    const said = JSON.parse(line);
    if (said.error) throw new Error(said.error.message);
    if (said.tokens) {
      document.tokens = said.tokens;
      document.title = said.title;
      document.notes = said.notes;
      if (said.title && !conversation.isNamed) conversation.title = said.title;
      job.began = performance.now();  // opening and waiting took no part of the rate
      job.read = { total: said.tokens, cache: said.cached_tokens, processed: said.cached_tokens };
    }
    if (said.read) job.read.processed = said.read;
    if (job.read) job.read.seconds = (performance.now() - job.began) / 1000;
    beginning = said.beginning ?? beginning;
    tell(said.tokens ? "list" : "progress", conversation);
  }
  return beginning;
}
