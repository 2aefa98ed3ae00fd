/** Requests to the server that the page came from. */

/** The server doesn't answer at all. */
export class Unreachable extends Error {
  constructor() {
    super("The server can't be reached. Is edgeinfinite serve still running?");
  }
}

/** The server wants a key. */
export class KeyWanted extends Error {}

export const useKey = (key) => sessionStorage.setItem("key", key);  // gone with the tab

export async function request(path, options = {}) {
  const key = sessionStorage.getItem("key");
  const headers = { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...options.headers };
  const response = await unlessGone(fetch(path, { ...options, headers }));
  if (response.ok) return response;
  const said = await response.json().catch(() => null);
  const message = said?.error?.message ?? `The server answered ${response.status}.`;
  throw response.status === 401 ? new KeyWanted(message) : new Error(message);
}

/** The lines of a response, as they come. */
export async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await unlessGone(reader.read());
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts;
  }
  if (rest) yield rest;
}

/** The objects of a chat's stream. */
export async function* events(response) {
  for await (const line of lines(response)) {
    if (!line.startsWith("data: {")) continue;
    const said = JSON.parse(line.slice(6));
    if (said.error) throw new Error(said.error.message);
    yield said;
  }
}

async function unlessGone(promise) {
  try {
    return await promise;
  } catch (error) {
    throw error.name === "AbortError" ? error : new Unreachable();
  }
}
