/** The field at the bottom: asking, stopping, choosing a document, keys. */

import { askNext } from "./answering.js";
import { app, jobOf, on } from "./app.js";
import { isEmpty } from "./conversation.js";
import { at, icon } from "./dom.js";
import { isEnter } from "./editor.js";
import { show, startNew } from "./library.js";
import { editLast } from "./messages.js";
import { endToast } from "./toast.js";
import { stop } from "./jobs.js";

const drafts = new Map();  // what was typed and not asked, by the conversation's id
let shown = null;

/** Puts the cursor into the field, where that doesn't bring up a keyboard of glass. */
export function focusComposer() {
  if (matchMedia("(pointer: fine)").matches) at("question").focus();
}

export function prepareComposer(toEnd) {
  at("attach").append(icon("attach"));
  at("newest").append(icon("down"));
  at("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const question = at("question").value.trim();
    if (!question || at("send").disabled) return;
    at("question").value = "";
    endToast();
    askNext(app.current, question);
    show(app.current);
    toEnd();
    fit();
  });
  at("question").addEventListener("input", fit);
  at("question").addEventListener("keydown", (event) => {
    if (isEnter(event)) {
      event.preventDefault();
      at("ask").requestSubmit();
    } else if (event.key === "ArrowUp" && !at("question").value) {
      event.preventDefault();
      editLast();
    }
  });
  at("stop").addEventListener("click", () => stop(app.current));
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !at("settings").open) stop(app.current);
    if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "o") {
      event.preventDefault();
      startNew();
      at("question").focus();
    }
  });
  on("opened", () => {
    if (shown) drafts.set(shown, at("question").value);
    shown = app.current.id;
    at("question").value = drafts.get(shown) ?? "";
    fit();
    toEnd();
  });
  for (const event of ["shown", "list", "model"]) on(event, draw);
  shown = app.current.id;
  draw();
}

function draw() {
  const { document } = app.current;
  const job = jobOf(app.current);
  const isUnread = document && !document.isRead;
  at("welcome").hidden = !isEmpty(app.current);
  at("stop").hidden = job?.kind !== "answer";
  at("send").hidden = job?.kind === "answer";
  at("send").disabled = Boolean(job) || !app.about?.edgeinfinite.chat || Boolean(isUnread);
  at("question").placeholder = !isUnread ? "Ask something"
    : job ? "Ask when it is read" : "It isn't read yet";
}

/** As high as what is typed, up to what the style allows. */
function fit() {
  const field = at("question");
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}
