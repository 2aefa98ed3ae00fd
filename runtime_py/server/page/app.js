/** What the page knows, and who is told when it changes. */

import { newConversation } from "./conversation.js";

export const app = {
  about: null,  // the model, as /v1/models has it; null until the server answered
  conversations: new Map(),  // by id, those that are kept
  current: newConversation(),
  jobs: new Map(),  // what is at work, by the conversation's id
  settings: {},
};

const listeners = new EventTarget();

/**
 * Events: "list" (titles, order, what is at work), "shown" (the conversation on the screen),
 * "piece" (an answer grew), "progress" (a reading went on), "model".
 */
export const on = (name, listener) =>
  listeners.addEventListener(name, ({ detail }) => listener(detail));

export const tell = (name, detail = null) =>
  listeners.dispatchEvent(new CustomEvent(name, { detail }));

export const jobOf = (conversation) => app.jobs.get(conversation.id);
