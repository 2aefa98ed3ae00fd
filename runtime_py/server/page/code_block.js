/** A block of code, its language, and a button that copies it. */

import { copyButton } from "./copy.js";
import { make } from "./dom.js";

export function codeBlock(code, language) {
  return make("div", { class: "code" },
    make("div", { class: "code-head" }, make("span", { text: language }),
      copyButton(() => code, { "aria-label": "Copy code" })),
    make("pre", { tabindex: "0" }, make("code", { text: code })));
}
