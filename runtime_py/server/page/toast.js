/** What just happened, with a way back; and the same for screen readers. */

import { at, button, iconButton } from "./dom.js";

/** Shows a line with an undo; it stays until it is closed, used, or another takes its place. */
export function toast(text, undo) {
  const close = () => { at("toast").hidden = true; };
  at("toast").replaceChildren(text, button("Undo", () => { close(); undo(); }),
    iconButton("close", "Close", close));
  at("toast").hidden = false;
}

export const endToast = () => { at("toast").hidden = true; };

/** Says something to screen readers alone. */
export function announce(text) {
  at("live").textContent = "";
  requestAnimationFrame(() => { at("live").textContent = text; });
}
