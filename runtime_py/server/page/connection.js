/** Whether the server is there: the model's facts, the key, and what is said when it's gone. */

import { app, tell } from "./app.js";
import { KeyWanted, Unreachable, request, useKey } from "./api.js";
import { at } from "./dom.js";
import { announce } from "./toast.js";

const TRIED_EVERY = 2000;  // milliseconds
let watching = null;

export function complain(message) {
  at("problem").textContent = message;
  at("problem").hidden = !message;
}

/** Asks for the model's facts. */
export async function connect() {
  try {
    const models = await (await request("/v1/models")).json();
    app.about = models.data[0];
    at("key-form").hidden = true;
    complain(app.about.edgeinfinite.chat ? "" :
      "This artifact has no chat template, so it can only continue texts; ask it through "
      + "/v1/completions.");
    tell("model");
  } catch (error) {
    if (error instanceof Unreachable) lost();
    else if (error instanceof KeyWanted) askForKey(error.message);
    else complain(error.message);
  }
}

/** Says that the server is gone, and waits until it is back. */
export function lost() {
  complain(`${new Unreachable().message} The page tries again by itself.`);
  watching ??= setInterval(async () => {
    const answer = await fetch("/health").catch(() => null);
    if (!answer?.ok || !watching) return;
    clearInterval(watching);
    watching = null;
    announce("The server is back.");
    await connect();
  }, TRIED_EVERY);
}

export function askForKey(message = "") {
  at("key-form").hidden = false;
  // Without a key nothing is wrong yet.
  complain(sessionStorage.getItem("key") ? message : "");
  at("key").focus();
}

export function prepareKey() {
  at("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(at("key").value);
    connect();
  });
}
