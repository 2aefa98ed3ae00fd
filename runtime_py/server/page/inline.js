/**
 * Markdown within a line: code, emphasis, links. Everything becomes elements and text nodes, never
 * HTML; what isn't understood stays the text that it is.
 */

import { make } from "./dom.js";

const MARKS = [["***", "em", "strong"], ["**", "strong"], ["__", "strong"], ["~~", "del"],
  ["*", "em"], ["_", "em"]];
const DEEPEST = 20;
const LONGEST_LINK = 1000;  // characters of its words or address; beyond, it is no link
const ESCAPED = /^\\([!-/:-@[-`{-~])/;
const ADDRESS = /^https?:\/\/[^\s<>"'`]+/;

/** Nodes of a text. */
export function inline(text, depth = 0) {
  const nodes = [];
  const open = new Set();  // marks that nothing closes from here on, so that none is looked for twice
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
  };
  let at = 0;
  while (at < text.length) {
    const found = depth < DEEPEST ? special(text, at, depth, open) : null;
    if (!found) {
      plain += text[at];
      at += 1;
    } else if (typeof found.node === "string") {
      plain += found.node;
      at += found.length;
    } else {
      flush();
      nodes.push(found.node);
      at += found.length;
    }
  }
  flush();
  return nodes;
}

function special(text, at, depth, open) {
  switch (text[at]) {
    case "\\": return escaped(text, at);
    case "`": return code(text, at);
    case "\n": return { node: make("br"), length: 1 };
    case "[": return link(text, at, at, depth);
    case "!": return text[at + 1] === "[" ? link(text, at + 1, at, depth) : null;
    case "h": return address(text, at);
    case "*": case "_": case "~": return emphasis(text, at, depth, open);
    default: return null;
  }
}

function escaped(text, at) {
  const found = ESCAPED.exec(text.slice(at, at + 2));
  return found && { node: found[1], length: 2 };
}

function code(text, at) {
  let ticks = 1;
  while (text[at + ticks] === "`") ticks += 1;
  const fence = "`".repeat(ticks);
  let end = text.indexOf(fence, at + ticks);
  while (end !== -1 && text[end + ticks] === "`") {  // a longer run isn't its end
    let next = end;
    while (text[next] === "`") next += 1;
    end = text.indexOf(fence, next);
  }
  if (end === -1) return { node: fence, length: ticks };
  const said = text.slice(at + ticks, end).replaceAll("\n", " ");
  const isPadded = said.startsWith(" ") && said.endsWith(" ") && said.trim();
  return {
    node: make("code", { text: isPadded ? said.slice(1, -1) : said }), length: end + ticks - at,
  };
}

function emphasis(text, at, depth, open) {
  for (const [mark, outer, inner] of MARKS) {
    if (open.has(mark) || !text.startsWith(mark, at)) continue;
    const from = at + mark.length;
    if (!text[from] || /\s/.test(text[from])) continue;
    if (mark[0] === "_" && /\w/.test(text[at - 1] ?? " ")) continue;  // snake_case
    const end = closing(text, mark, from);
    if (end === -1) {
      open.add(mark);
      continue;
    }
    const within = inline(text.slice(from, end), depth + 1);
    const node = make(outer, {}, ...(inner ? [make(inner, {}, ...within)] : within));
    return { node, length: end + mark.length - at };
  }
  let run = 1;  // all of it is text: looking again from its second sign would take long
  while (text[at + run] === text[at]) run += 1;
  return { node: text.slice(at, at + run), length: run };
}

/** Where a mark closes: after a sign that is no space, and not amid a longer mark. */
function closing(text, mark, from) {
  for (let end = text.indexOf(mark, from); end !== -1; end = text.indexOf(mark, end + 1)) {
    if (/[\s\\]/.test(text[end - 1]) || end === from) continue;
    const after = text[end + mark.length] ?? " ";
    if (mark.length === 1 && (after === mark || text[end - 1] === mark)) continue;
    if (mark[0] === "_" && /\w/.test(after)) continue;
    return end;
  }
  return -1;
}

/** `[words](address)`. A picture is a link, too: showing it would ask another server for it. */
function link(text, bracket, at, depth) {
  let open = 0;
  let end = bracket;
  for (; end < text.length && end - bracket < LONGEST_LINK; end += 1) {
    if (text[end] === "\\") end += 1;
    else if (text[end] === "[") open += 1;
    else if (text[end] === "]" && (open -= 1) === 0) break;
  }
  if (text[end + 1] !== "(") return null;
  const close = closingBracket(text, end + 1);
  if (close === -1) return null;
  const [target] = text.slice(end + 2, close).trim().split(/\s/, 1);
  const words = text.slice(bracket + 1, end);
  const found = safe(target.replace(/^<(.*)>$/, "$1"));
  if (!found) return null;  // all of it stays text
  return { node: anchor(found, inline(words, depth + 1)), length: close + 1 - at };
}

function closingBracket(text, from) {
  let open = 0;
  const end = Math.min(text.length, from + LONGEST_LINK);
  for (let at = from; at < end && text[at] !== "\n"; at += 1) {
    if (text[at] === "(") open += 1;
    else if (text[at] === ")" && (open -= 1) === 0) return at;
  }
  return -1;
}

function address(text, at) {
  if (/\w/.test(text[at - 1] ?? " ")) return null;
  const found = ADDRESS.exec(text.slice(at, at + LONGEST_LINK));
  if (!found) return null;
  const said = found[0].replace(/[.,;:!?*_~)\]]+$/, "");
  const target = safe(said);
  return target && { node: anchor(target, [said]), length: said.length };
}

/** The address, if it is of a kind that runs nothing; null otherwise. */
function safe(target) {
  try {
    const found = new URL(target);
    return ["http:", "https:", "mailto:"].includes(found.protocol) ? found.href : null;
  } catch {
    return null;
  }
}

const anchor = (href, children) =>
  make("a", { href, title: href, target: "_blank", rel: "noopener noreferrer nofollow" },
    ...children);
