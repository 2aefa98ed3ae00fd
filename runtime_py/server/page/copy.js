/** Buttons that copy a text. */

import { button } from "./dom.js";
import { announce } from "./toast.js";

const SAID_FOR = 1500;  // milliseconds

export function copyButton(text, more = {}) {
  return button("Copy", async ({ currentTarget: pressed }) => {
    const isCopied = await copy(text());
    pressed.textContent = isCopied ? "Copied" : "Can't copy";
    announce(pressed.textContent);
    setTimeout(() => { pressed.textContent = "Copy"; }, SAID_FOR);
  }, more);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {  // there is no clipboard where a page isn't from localhost or by HTTPS
    return copySelected(text);
  }
}

function copySelected(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  const before = document.activeElement;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  before?.focus();
  return isCopied;
}
