/** What the text takes in memory, against what full attention would take. */

import { app, jobOf, on } from "./app.js";
import { held } from "./conversation.js";
import { at } from "./dom.js";
import { bytes, count, tokens } from "./words.js";

export function prepareContextBar() {
  for (const event of ["shown", "list", "model"]) on(event, draw);
  on("progress", (conversation) => conversation === app.current && draw());
}

function draw() {
  const read = Math.max(held(app.current), jobOf(app.current)?.read?.processed ?? 0);
  at("context").hidden = !app.about || !read;
  if (at("context").hidden) return;
  const { state_bytes: state, full_attention_bytes_per_token: each } = app.about.edgeinfinite;
  at("context-bar").hidden = state === null;
  if (state === null) {
    at("context-words").textContent =
      `${tokens(read)} held · exact attention: ${bytes(each * read)}, which grows with the text`;
    return;
  }
  const passes = Math.ceil(state / each);  // where full attention's bytes pass the state's
  const [bar, mark] = at("context-bar").children;
  const widest = Math.max(2 * passes, read);
  bar.style.width = `${(100 * read) / widest}%`;
  mark.style.left = `${(100 * passes) / widest}%`;
  at("context-words").textContent =
    `${tokens(read)} held in ${bytes(state)}, however long the text · `
    + `full attention takes more from ${tokens(passes)} on`
    + (read > passes ? `, here ${bytes(each * read)}` : "");
  at("context-bar").title = `The mark stands at ${count(passes)} tokens.`;
}
