/** How far a reading is, and how long it still takes. */

import { count, timeLeft, tokens } from "./words.js";

const SURE_AFTER = 0.5;  // seconds, from when on a rate says something

/** `read` has tokens `total`, `cache` (known before), `processed`, and `seconds`. */
export function progressWords(read) {
  if (!read) return "";
  const { total, cache, processed, seconds } = read;
  const rate = (processed - cache) / Math.max(seconds, 0.001);
  const left = total - processed;
  return `${count(processed)} of ${tokens(total)} read`
    + (cache ? `, ${count(cache)} from a saved state` : "")
    + (seconds > SURE_AFTER && rate > 0
      ? ` · ${count(Math.round(rate))} tokens/s${left ? ` · ${timeLeft(left / rate)}` : ""}` : "");
}
