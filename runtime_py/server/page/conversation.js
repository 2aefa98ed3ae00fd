/**
 * A conversation: a tree of messages, of which one path is shown.
 *
 * Messages stand in one list and name their parent by its place there, -1 for none. Editing and
 * regenerating add siblings, so nothing that was said is ever lost; `chosen` says which child of a
 * message is on the path.
 */

export function newConversation(system = "") {
  return {
    id: newId(), title: "New chat", isNamed: false, updated: Date.now(), system, document: null,
    messages: [], chosen: {},
  };
}

export function newId() {  // randomUUID is missing where a page isn't from localhost or by HTTPS
  const random = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const isEmpty = (conversation) =>
  !conversation.messages.length && !conversation.document;

/** The places of the messages that are shown, first to last. */
export function path(conversation) {
  const shown = [];
  let here = conversation.chosen[-1];
  while (here !== undefined) {
    shown.push(here);
    here = conversation.chosen[here];
  }
  return shown;
}

/** Adds a message and shows it. Returns its place. */
export function add(conversation, parent, role, content) {
  conversation.messages.push({ parent, role, content });
  conversation.updated = Date.now();
  return choose(conversation, conversation.messages.length - 1);
}

/** Shows a message in place of its siblings. */
export function choose(conversation, place) {
  conversation.chosen[conversation.messages[place].parent] = place;
  return place;
}

/** A message and those that stand in its place in other versions. */
export function versions(conversation, place) {
  const { parent } = conversation.messages[place];
  return [...conversation.messages.keys()].filter(
    (one) => conversation.messages[one].parent === parent);
}

/** Takes the newest message back, which nothing follows, and shows the version before it. */
export function withdraw(conversation, place) {
  const before = versions(conversation, place).filter((one) => one !== place).at(-1);
  const { parent } = conversation.messages[place];
  conversation.messages.length = place;
  if (before === undefined) delete conversation.chosen[parent];
  else conversation.chosen[parent] = before;
}

/** The messages up to one, as the server takes them. */
export function request(conversation, place, beginning) {
  const chain = [];
  for (let here = place; here !== -1; here = conversation.messages[here].parent) {
    chain.unshift(conversation.messages[here]);
  }
  const said = conversation.system ? [{ role: "system", content: conversation.system }] : [];
  chain.forEach(({ role, content }, i) => {
    const text = i ? content : beginning + content;
    const before = said.at(-1);
    // Templates want turns: a question that got no answer is part of the next one.
    if (role === "user" && before?.role === "user") before.content += `\n\n${text}`;
    else said.push({ role, content: text });
  });
  return said;
}

/** A copy that goes on by itself, of what is shown up to a message. */
export function fork(conversation, place) {
  const copy = newConversation(conversation.system);
  copy.title = conversation.title;
  copy.isNamed = conversation.isNamed;
  copy.document = conversation.document && { ...conversation.document };
  let parent = -1;
  for (const shown of path(conversation)) {
    if (place === -1) break;
    copy.messages.push({ ...conversation.messages[shown], parent });
    copy.chosen[parent] = copy.messages.length - 1;
    parent = copy.messages.length - 1;
    if (shown === place) break;
  }
  return copy;
}

/** Tokens that the state has read at the end of what is shown, as far as the server said. */
export function held(conversation) {
  const { document } = conversation;
  const shown = path(conversation).map((place) => conversation.messages[place]);
  return shown.findLast((message) => message.tokens)?.tokens
    ?? (document?.isRead ? document.tokens : 0);
}
