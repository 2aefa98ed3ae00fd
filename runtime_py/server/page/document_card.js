/** A conversation's document: its name, what was left out of it, and how far it is read. */

import { app, jobOf, on } from "./app.js";
import { fork } from "./conversation.js";
import { at, button, make } from "./dom.js";
import { keep, show } from "./library.js";
import { progressWords } from "./progress.js";
import { readDocument } from "./reading.js";
import { stop } from "./jobs.js";
import { tokens } from "./words.js";

export function prepareDocumentCard() {
  on("shown", draw);
  on("list", draw);
  on("progress", (conversation) => conversation === app.current && progress());
}

function draw() {
  const conversation = app.current;
  const { document } = conversation;
  at("document").hidden = !document;
  if (!document) return;
  const hadFocus = at("document").contains(globalThis.document.activeElement);
  const isReading = jobOf(conversation)?.kind === "reading";
  at("document").replaceChildren(
    make("h2", { id: "document-name", text: document.title
      ? `${document.title} (${document.name})` : document.name }),
    isReading ? make("progress", { id: "progress", "aria-labelledby": "document-name" }) : "",
    make("div", { class: "row" }, make("p", { class: "quiet", id: "reading" }),
      make("span", { class: "spring" }), action(conversation, isReading)),
    ...document.notes.map((note) => make("p", { class: "quiet", text: note })));
  if (document.problem && !isReading) {
    at("document").append(make("p", { class: "bad", text: document.problem }));
  }
  progress();
  if (hadFocus) at("document").querySelector("button")?.focus();
}

function action(conversation, isReading) {
  if (isReading) return button("Stop reading", () => stop(conversation), { class: "small" });
  if (!conversation.document.isRead) {
    return button("Read on", () => readDocument(conversation), { class: "small" });
  }
  return button("New chat about it", async () => {
    const copy = fork(conversation, -1);
    await keep(copy);
    show(copy);
  }, { class: "small" });
}

function progress() {
  const { document } = app.current;
  if (!document) return;
  const job = jobOf(app.current);
  const bar = at("progress");
  if (bar && job?.read) {
    bar.max = job.read.total;
    bar.value = job.read.processed;
  }
  at("reading").textContent = document.isRead ? `${tokens(document.tokens)} read`
    : progressWords(job?.read) || (job ? "opening …" : "not read to its end");
}
