/** The field above the list that leaves the conversations with the words that are looked for. */

import { app, on, tell } from "./app.js";
import { at } from "./dom.js";

export function prepareFind() {
  const field = at("find");
  field.addEventListener("input", () => tell("list"));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !field.value) return;
    event.stopPropagation();  // which would end an answer, or close the drawer
    event.preventDefault();
    clearFind();
    tell("list");
  });
  const draw = () => { field.hidden = app.conversations.size < 2 && !field.value; };
  on("list", draw);
  draw();
}

export const clearFind = () => { at("find").value = ""; };

/** Those in whose title, document's name or messages, of all versions, every word stands. */
export function found(conversations) {
  const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return conversations;
  return conversations.filter(({ title, document, messages }) => {
    const text = [title, document?.title, document?.name, ...messages.map(({ content }) => content)]
      .join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
