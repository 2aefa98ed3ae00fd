/** The settings that the server takes, and what each does. */

export const PARAMETERS = [
  { name: "temperature", label: "Temperature", min: 0, max: 2,
    about: "How freely words are chosen. 0 always takes the likeliest, so that an answer repeats." },
  { name: "top_p", label: "Top-p", min: 0, max: 1,
    about: "Chooses among the likeliest tokens that together have this share; 1 among all." },
  { name: "top_k", label: "Top-k", min: 0, step: 1,
    about: "Chooses among so many of the likeliest tokens; 0 among all." },
  { name: "min_p", label: "Min-p", min: 0, max: 1,
    about: "Leaves out tokens less than this share as likely as the likeliest; 0 leaves none out." },
  { name: "repetition_penalty", label: "Repetition penalty", min: 0.01, max: 10,
    about: "Above 1, tokens that the answer already has become less likely." },
  { name: "presence_penalty", label: "Presence penalty", min: -2, max: 2,
    about: "Above 0, tokens that the answer already has become less likely, however often." },
  { name: "frequency_penalty", label: "Frequency penalty", min: -2, max: 2,
    about: "Above 0, tokens become less likely with each time that the answer has them." },
  { name: "max_tokens", label: "Most tokens of an answer", min: 1, max: 10_000_000, step: 1,
    about: "An answer ends there, also amid a sentence; Continue goes on." },
  { name: "seed", label: "Seed", min: 0, step: 1,
    about: "With the same seed, the same question gets the same answer; empty draws a new one." },
];

export const MOST_STOPS = 16;

/** What a request says of how to answer; what isn't set is the server's to choose. */
export function parameters(settings) {
  const given = {};
  for (const { name } of PARAMETERS) {
    if (settings[name] !== undefined) given[name] = settings[name];
  }
  const stops = stopsOf(settings.stop ?? "");
  if (stops.length) given.stop = stops;
  return given;
}

/** Stop sequences, one a line; \n stands for a line's end, \t for a tab, \\ for a backslash. */
export function stopsOf(text) {
  const meant = { n: "\n", t: "\t", "\\": "\\" };
  return text.split("\n").filter((line) => line !== "").map((line) =>
    line.replace(/\\([nt\\])/g, (_, sign) => meant[sign]));
}
