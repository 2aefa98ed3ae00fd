/** The messages on the screen, and what can be done with each. */

import { answer, askInstead, goOn } from "./answering.js";
import { app, jobOf, on, tell } from "./app.js";
import { choose, fork, path, versions } from "./conversation.js";
import { copyButton } from "./copy.js";
import { at, button, make } from "./dom.js";
import { editor } from "./editor.js";
import { keep, remove, show } from "./library.js";
import * as markdown from "./markdown.js";
import { progressWords } from "./progress.js";
import { announce, toast } from "./toast.js";
import { stop } from "./jobs.js";
import { count, tokens } from "./words.js";

let edited = null;  // the place of the question that is being edited

export function prepareMessages() {
  on("opened", () => { edited = null; });
  on("shown", drawAll);
  on("piece", (conversation) => conversation === app.current && drawGrowing());
  on("progress", (conversation) => conversation === app.current && drawGrowing());
}

/** Edits the last question on the screen, if one may be. */
export function editLast() {
  const place = path(app.current).findLast((one) => app.current.messages[one].role === "user");
  if (place !== undefined && !jobOf(app.current)) edit(place);
}

function edit(place) {
  edited = place;
  drawAll();
}

function drawAll() {
  const conversation = app.current;
  const focused = document.activeElement?.dataset?.focus;
  const shown = path(conversation);
  const working = jobOf(conversation);
  at("turns").replaceChildren(...shown.map((place, i) => {
    const isGrowing = working?.kind === "answer" && i === shown.length - 1;
    return turn(conversation, place, i, isGrowing);
  }));
  at("turns").setAttribute("aria-busy", String(working?.kind === "answer"));
  if (working?.kind === "answer") drawGrowing();
  if (focused) document.querySelector(`[data-focus="${focused}"]`)?.focus();
}

function turn(conversation, place, i, isGrowing) {
  const message = conversation.messages[place];
  const item = make("li", { class: message.role },
    make("h2", { class: "who", text: message.role === "user" ? "You" : "Model" }));
  if (place === edited) {
    item.append(editor(message.content, (text) => change(conversation, place, text), () => {
      edited = null;
      drawAll();
    }));
    return item;
  }
  const said = make("div", { class: "said" });
  item.append(...thought(message), said);
  if (message.role === "user") said.textContent = message.content;
  else markdown.draw(said, message.content);
  if (isGrowing) {
    item.append(make("p", { class: "quiet note" }));
    return item;
  }
  if (message.role === "assistant") item.append(...notes(conversation, place, message));
  item.append(actions(conversation, place, i));
  if (message.problem && message.role === "user") item.append(unanswered(conversation, place));
  if (message.figures) item.append(make("p", { class: "quiet figures", text: figures(message) }));
  return item;
}

/** Draws the answer that grows, at most once for each picture that the screen shows. */
let isDue = false;
function drawGrowing() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    const job = jobOf(app.current);
    const item = at("turns").lastElementChild;
    const note = item?.querySelector(".note");
    if (job?.kind !== "answer" || !note) return;
    const message = app.current.messages[path(app.current).at(-1)];
    markdown.draw(item.querySelector(".said"), message.content);
    drawThought(item, message);
    note.textContent = message.content || message.thought ? "" : progressWords(job.read) || "waiting for the model …";
  });
}

/** What the model reasoned before its answer, folded away. */
function thought({ thought: text }) {
  return text ? [make("details", { class: "thought" }, make("summary", { text: "Reasoning" }),
    make("div", { class: "quiet", text }))] : [];
}

function drawThought(item, message) {
  const shown = item.querySelector(".thought > div");
  if (shown) shown.textContent = message.thought;
  else item.querySelector(".said").before(...thought(message));
}

function notes(conversation, place, { content, thought: reasoned, finish, problem }) {
  const isEnd = conversation.chosen[place] === undefined;
  const repeats = finish === "repetition_detected";
  const why = problem ?? (repeats ? "It repeated itself, so it was ended." : {
    length: "This answer reached its most tokens.", stopped: "Stopped.", null: "This answer was cut off." }[finish]);
  const found = content || reasoned ? [] : [make("p", { class: "quiet", text: "The model said nothing." })];
  if (why) {
    found.push(make("p", { class: problem ? "bad" : "quiet" }, `${why} `, isEnd && content && !repeats
      ? button("Continue", () => goOn(conversation, place), { class: "small" }) : null));
  }
  return found;
}

function unanswered(conversation, place) {
  return make("p", { class: "bad" }, `${conversation.messages[place].problem} `,
    button("Try again", () => answer(conversation, place), { class: "small" }));
}

function actions(conversation, place, i) {
  const message = conversation.messages[place];
  const isUser = message.role === "user";
  const isBusy = Boolean(jobOf(conversation));
  const act = (name, text, onclick) => button(text, onclick, {
    "data-focus": `${name}-${i}`, disabled: isBusy,
  });
  return make("div", {
    class: "actions", role: "group", "aria-label": isUser ? "Your message" : "The answer",
  },
  ...switcher(conversation, place, i, isBusy),
  copyButton(() => message.content, { "data-focus": `copy-${i}` }),
  isUser ? act("edit", "Edit", () => edit(place))
    : act("again", "Regenerate", () => answer(conversation, message.parent)),
  isUser ? null : act("fork", "Fork", () => forkAt(conversation, place)));
}

function switcher(conversation, place, i, isBusy) {
  const all = versions(conversation, place);
  if (all.length < 2) return [];
  const here = all.indexOf(place);
  const to = (name, label, text, there) => button(text, () => {
    choose(conversation, all[there]);
    keep(conversation);
    tell("shown");
    announce(`Version ${there + 1} of ${all.length}`);
  }, { "aria-label": label, "data-focus": `${name}-${i}`,
    disabled: isBusy || all[there] === undefined });
  return [to("earlier", "Earlier version", "‹", here - 1),
    make("span", { class: "quiet version", text: `${here + 1}/${all.length}` }),
    to("later", "Later version", "›", here + 1)];
}

function change(conversation, place, text) {
  if (jobOf(conversation)) return;  // the field stays, with what was typed
  edited = null;
  askInstead(conversation, place, text);
  toast("The earlier message is kept as a version of this one.", () => {
    stop(conversation);
    choose(conversation, place);
    keep(conversation);
    tell("shown");
  });
}

async function forkAt(conversation, place) {
  const copy = fork(conversation, place);
  await keep(copy);
  show(copy);
  toast("This is a copy; the conversation that it came from goes on beside it.", async () => {
    await remove(copy);
    show(conversation);
  });
}

function figures({ figures: { cached, read, first, rate } }) {
  return `${tokens(cached)} from a saved state, ${count(read)} read · first token after `
    + `${first.toFixed(first < 10 ? 2 : 0)} s`
    + (rate && Number.isFinite(rate) ? ` · ${rate.toFixed(rate < 10 ? 1 : 0)} tokens/s` : "");
}
