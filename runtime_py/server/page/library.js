/** The conversations that are kept, and what can be done with a whole one. */

import { app, on, tell } from "./app.js";
import { isEmpty, newConversation } from "./conversation.js";
import * as store from "./store.js";
import { stop } from "./jobs.js";

/** Reads what is kept and shows the conversation that the address names. False: none are kept. */
export async function openLibrary() {
  const isKept = await store.open();
  const kept = await store.all("conversations");
  for (const one of kept) app.conversations.set(one.id, one);
  app.settings = await store.get("settings", "all") ?? {};
  if (isEmpty(app.current)) app.current.system = app.settings.system ?? "";
  showNamed();
  tell("list");
  addEventListener("hashchange", showNamed);
  store.onOthers(takeOver);
  return isKept;
}

/** The newest first. */
export const listed = () =>
  [...app.conversations.values()].sort((one, other) => other.updated - one.updated);

function showNamed() {
  const named = app.conversations.get(location.hash.slice(1));
  if (named && named === app.current) return;
  if (named || !isEmpty(app.current)) show(named ?? newConversation(app.settings.system));
}

/** Puts a conversation on the screen, and into the address, so that a reload finds it. */
export function show(conversation) {
  app.current = conversation;
  const name = isEmpty(conversation) ? "" : conversation.id;
  if (location.hash.slice(1) !== name) {
    history.pushState(null, "", name ? `#${name}` : location.pathname);
  }
  tell("opened");
  tell("shown");
  tell("list");
}

export const startNew = () => show(newConversation(app.settings.system));

export async function keep(conversation) {
  app.conversations.set(conversation.id, conversation);
  if (conversation === app.current && location.hash.slice(1) !== conversation.id) {
    history.replaceState(null, "", `#${conversation.id}`);
  }
  await store.put("conversations", conversation.id, conversation).catch(({ message }) =>
    tell("unkept", `This browser couldn't keep the conversation: ${message}`));
}

/** Deletes a conversation, and its document unless another has it. Returns what brings it back. */
export async function remove(conversation) {
  stop(conversation);
  const wasShown = conversation === app.current;
  app.conversations.delete(conversation.id);
  await store.remove("conversations", conversation.id);
  const key = conversation.document?.id;
  const isShared = listed().some(({ document }) => document?.id === key);
  const text = key && !isShared ? await store.get("documents", key) : undefined;
  if (text !== undefined) await store.remove("documents", key);
  if (wasShown) startNew();
  tell("list");
  return async () => {
    if (text !== undefined) await store.put("documents", key, text);
    await keep(conversation);
    if (wasShown && isEmpty(app.current)) show(conversation);
    tell("list");
  };
}

export async function rename(conversation, title) {
  conversation.title = title;
  conversation.isNamed = true;
  await keep(conversation);
  tell("list");
}

/** Another tab kept or deleted something; what is at work here stays as it is. */
async function takeOver(name, key) {
  if (name === "settings") app.settings = await store.get("settings", "all") ?? {};
  if (name !== "conversations" || app.jobs.has(key)) return;
  const changed = await store.get("conversations", key);
  if (changed) app.conversations.set(key, changed);
  else app.conversations.delete(key);
  if (app.current.id === key && changed) {
    app.current = changed;
    tell("shown");
  }
  tell("list");
}

on("settings", () => store.put("settings", "all", app.settings));
