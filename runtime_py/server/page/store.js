/**
 * What this browser keeps: conversations, their documents' texts, settings.
 *
 * IndexedDB, since documents are larger than localStorage takes. A document stands apart from its
 * conversations, which forks share it with. Where a browser keeps nothing, all goes on in memory.
 */

const OTHERS = new BroadcastChannel("edgeinfinite");
const unkept = { conversations: new Map(), documents: new Map(), settings: new Map() };
let database = null;

/** Opens the store. False: nothing will be kept. */
export async function open() {
  try {
    const asked = indexedDB.open("edgeinfinite", 1);
    asked.onupgradeneeded = () => {
      for (const name of Object.keys(unkept)) asked.result.createObjectStore(name);
    };
    database = await done(asked);
  } catch {
    return false;
  }
  database.onversionchange = () => database.close();
  return true;
}

function done(asked) {
  return new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

const table = (name, mode) => database.transaction(name, mode).objectStore(name);

export function get(name, key) {
  return database ? done(table(name, "readonly").get(key)) : unkept[name].get(key);
}

export function all(name) {
  return database ? done(table(name, "readonly").getAll()) : [...unkept[name].values()];
}

export async function put(name, key, value) {
  if (database) await done(table(name, "readwrite").put(value, key));
  else unkept[name].set(key, value);
  if (name !== "documents") OTHERS.postMessage({ name, key });
}

export async function remove(name, key) {
  if (database) await done(table(name, "readwrite").delete(key));
  else unkept[name].delete(key);
  if (name !== "documents") OTHERS.postMessage({ name, key });
}

/** Calls back with the name and key of what another tab changed. */
export const onOthers = (listener) => {
  OTHERS.onmessage = ({ data }) => listener(data.name, data.key);
};
