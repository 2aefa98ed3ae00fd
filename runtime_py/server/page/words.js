/** Numbers as people read them. */

export const count = (number) => number.toLocaleString("en");

export const tokens = (number) => `${count(number)} token${number === 1 ? "" : "s"}`;

export function bytes(size) {
  if (size >= 1e9) return `${(size / 1e9).toFixed(2)} GB`;
  if (size >= 1e6) return `${(size / 1e6).toFixed(size < 1e7 ? 2 : 1)} MB`;
  return `${(size / 1e3).toFixed(size < 1e4 ? 1 : 0)} kB`;
}

/** How long something still takes; rounded, since nobody knows it to the second. */
export function timeLeft(seconds) {
  if (seconds < 5) return "a few seconds left";
  if (seconds < 55) return `about ${Math.ceil(seconds / 5) * 5} s left`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 60) return `about ${minutes} min left`;
  return `about ${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}

/** The first line of a text, cut to what fits a list. */
export function titleOf(text) {
  const line = text.trim().split("\n", 1)[0].trim();
  const signs = [...line];
  return signs.length > 60 ? `${signs.slice(0, 59).join("").trim()}…` : line || "New chat";
}
