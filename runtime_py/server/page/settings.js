/** The dialog of settings: a conversation's system prompt, and how answers are chosen. */

import { app, on, tell } from "./app.js";
import { isEmpty } from "./conversation.js";
import { at, icon, make } from "./dom.js";
import { keep } from "./library.js";
import { MOST_STOPS, PARAMETERS, stopsOf } from "./parameters.js";
import { count } from "./words.js";

const fields = new Map();  // inputs, by the setting's name

export function prepareSettings() {
  at("open-settings").append(icon("settings"));
  at("open-settings").addEventListener("click", open);
  at("settings-cancel").addEventListener("click", () => at("settings").close());
  at("settings-reset").addEventListener("click", () => {
    for (const { name } of [...PARAMETERS, { name: "stop" }]) fields.get(name).value = "";
  });
  at("settings-form").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });
  at("settings-fields").append(
    field("system", make("textarea", { rows: "3" }), "System prompt",
      "Stands before this conversation and says how to answer. Changing it has the model read the "
      + "conversation again."),
    standing(),
    ...PARAMETERS.map(({ name, label, min, max, step, about }) => field(name,
      make("input", { type: "number", min, max, step: step ?? "any", inputmode: "decimal" }), label,
      about)),
    field("stop", make("textarea", { rows: "2", spellcheck: "false" }), "Stop sequences",
      `One a line, at most ${MOST_STOPS}: an answer ends where it would write one. \\n stands for `
      + "a new line."));
  on("model", placeholders);
}

function field(name, input, label, about) {
  const id = `setting-${name}`;
  input.id = id;
  input.setAttribute("aria-describedby", `${id}-about`);
  fields.set(name, input);
  return make("div", { class: "field" }, make("label", { for: id, text: label }), input,
    make("p", { class: "quiet", id: `${id}-about`, text: about }));
}

function standing() {
  const box = make("input", { type: "checkbox" });
  fields.set("standing", box);
  return make("label", { class: "check" }, box, " New conversations begin with it, too");
}

/** Empty fields show what the server takes then. */
function placeholders() {
  const defaults = app.about.edgeinfinite.defaults ?? {};
  for (const { name } of PARAMETERS) {
    const value = defaults[name];
    fields.get(name).placeholder = value === undefined || value === null ? "the server's own"
      : `${count(value)}, the server's own`;
  }
}

function open() {
  fields.get("system").value = app.current.system ?? "";
  fields.get("standing").checked = Boolean(app.settings.system)
    && app.settings.system === app.current.system;
  for (const { name } of PARAMETERS) fields.get(name).value = app.settings[name] ?? "";
  fields.get("stop").value = app.settings.stop ?? "";
  at("settings").showModal();
}

function save() {
  const stop = fields.get("stop");
  const isTooMany = stopsOf(stop.value).length > MOST_STOPS;
  stop.setCustomValidity(isTooMany ? `Give at most ${MOST_STOPS} stop sequences.` : "");
  if (!at("settings-form").reportValidity()) return;
  const system = fields.get("system").value.trim();
  const settings = {};
  for (const { name } of PARAMETERS) {
    const { value } = fields.get(name);
    if (value !== "") settings[name] = Number(value);
  }
  if (stop.value) settings.stop = stop.value;
  if (fields.get("standing").checked) settings.system = system;
  else if (app.settings.system && app.settings.system !== app.current.system) {
    settings.system = app.settings.system;  // another conversation's, which isn't changed here
  }
  app.settings = settings;
  app.current.system = system;
  if (!isEmpty(app.current)) keep(app.current);
  tell("settings");
  at("settings").close();
}
