/** The field in which a question is edited, in its place. */

import { button, make } from "./dom.js";

export function editor(text, done, cancel) {
  const field = make("textarea", { "aria-label": "Edit your message", rows: "3" });
  const save = () => field.value.trim() && done(field.value.trim());
  field.value = text;
  field.addEventListener("keydown", (event) => {
    if (isEnter(event)) {
      event.preventDefault();
      save();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      cancel();
    }
  });
  queueMicrotask(() => field.focus());
  return make("div", { class: "editor" }, field, make("div", { class: "row end" },
    button("Cancel", cancel), button("Ask this", save, { class: "main" })));
}

/** Enter alone; within an input method it ends a word. */
export const isEnter = (event) => event.key === "Enter" && !event.shiftKey && !event.isComposing;
