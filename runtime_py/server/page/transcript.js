/** The conversation on the screen as a file of Markdown. */

import { app, on } from "./app.js";
import { path } from "./conversation.js";
import { at, icon, make } from "./dom.js";

export function prepareTranscript() {
  at("download").append(icon("download"));
  at("download").addEventListener("click", () => save(app.current));
  const draw = () => { at("download").hidden = !path(app.current).length; };
  for (const event of ["shown", "list"]) on(event, draw);
  draw();
}

function save(conversation) {
  const file = new Blob([transcript(conversation)], { type: "text/markdown" });
  const address = URL.createObjectURL(file);
  make("a", { href: address, download: fileName(conversation.title) }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);  // the browser has it by then
}

/** What is shown: the versions that were chosen, as the model wrote them. */
function transcript(conversation) {
  const { title, document, system } = conversation;
  const said = path(conversation).map((place) => conversation.messages[place]);
  const parts = [`# ${title}`];
  if (document) parts.push(`About the document ${document.name}.`);
  if (system) parts.push("## System prompt", system);
  for (const { role, content } of said) parts.push(role === "user" ? "## You" : "## Model", content);
  return `${parts.join("\n\n")}\n`;
}

/** Without the signs that a file's name can't have on some system. */
const fileName = (title) =>
  `${title.replace(/[\\/:*?"<>|\p{C}\s]+/gu, " ").trim() || "conversation"}.md`;
