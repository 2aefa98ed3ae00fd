/**
 * Markdown as models write it: headings, lists, quotes, tables, code blocks.
 *
 * A text is cut into blocks by its lines; a block becomes elements. While an answer is written,
 * blocks that stay the same keep their elements, so that a reader's selection in them stays.
 */

import { codeBlock } from "./code_block.js";
import { make } from "./dom.js";
import { inline } from "./inline.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+|$)/;
const DIVIDER = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEPEST = 8;

/** Draws a text into an element; blocks that were drawn before stay. */
export function draw(element, text) {
  const wanted = blocks(text.split("\n"));
  wanted.forEach((block, i) => {
    const key = `${block.kind}\n${block.lines.join("\n")}`;
    const drawn = element.children[i];
    if (drawn?.markdown === key) return;
    const node = nodeOf(block, 0);
    node.markdown = key;
    if (drawn) drawn.replaceWith(node);
    else element.append(node);
  });
  while (element.children.length > wanted.length) element.lastElementChild.remove();
}

/** Blocks of lines, each with its kind. */
function blocks(lines) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const { kind, end } = blockAt(lines, at);
    found.push({ kind, lines: lines.slice(at, end) });
    at = end;
  }
  return found;
}

function blockAt(lines, at) {
  const line = lines[at];
  const from = at + 1;
  if (FENCE.test(line)) return { kind: "code", end: fenceEnd(lines, at) };
  if (HEADING.test(line)) return { kind: "heading", end: from };
  if (RULE.test(line)) return { kind: "rule", end: from };
  if (QUOTE.test(line)) return { kind: "quote", end: until(lines, from, (one) => !QUOTE.test(one)) };
  if (ITEM.test(line)) return { kind: "list", end: listEnd(lines, at) };
  if (isTable(lines, at)) {
    return { kind: "table", end: until(lines, at + 2, (one) => !one.includes("|")) };
  }
  return { kind: "paragraph", end: until(lines, from, (one, i) => begins(lines, i)) };
}

function until(lines, from, isEnd) {
  let at = from;
  while (at < lines.length && !isEnd(lines[at], at)) at += 1;
  return at;
}

/** Whether something else than a paragraph's next line stands there. */
function begins(lines, at) {
  const line = lines[at];
  return !line.trim() || FENCE.test(line) || HEADING.test(line) || RULE.test(line)
    || QUOTE.test(line) || ITEM.test(line) || isTable(lines, at);
}

const isTable = (lines, at) =>
  lines[at].includes("|") && (lines[at + 1] ?? "").includes("-") && DIVIDER.test(lines[at + 1])
  && cells(lines[at]).length === cells(lines[at + 1]).length;

/** Where a code block ends; one that isn't closed yet goes to the end of the text. */
function fenceEnd(lines, at) {
  const [, fence] = FENCE.exec(lines[at]);
  const closes = (line) => line.trim().startsWith(fence) && !line.trim().replaceAll(fence[0], "");
  return Math.min(until(lines, at + 1, closes) + 1, lines.length);
}

/** Items, lines that are indented below them, and blank lines between these. */
function listEnd(lines, at) {
  const [, margin, mark] = ITEM.exec(lines[at]);
  const isNumbered = /\d/.test(mark);
  let end = at + 1;
  for (let here = at + 1; here < lines.length; here += 1) {
    const line = lines[here];
    if (!line.trim()) continue;
    const item = ITEM.exec(line);
    const isDeeper = /^\s/.test(line) && indent(line) > margin.length;
    const isItem = item && /\d/.test(item[2]) === isNumbered && !RULE.test(line);
    const goesOn = here === end && !begins(lines, here);  // a paragraph's next line
    if (!isDeeper && !isItem && !goesOn) break;
    end = here + 1;
  }
  return end;
}

const indent = (line) => line.length - line.trimStart().length;

function nodeOf({ kind, lines }, depth) {
  switch (kind) {
    case "code": return fenced(lines);
    case "heading": return heading(lines[0]);
    case "rule": return make("hr");
    case "quote": return make("blockquote", {}, ...inner(lines.map((one) =>
      one.replace(QUOTE, "")), depth));
    case "list": return list(lines, depth);
    case "table": return table(lines);
    default: return make("p", {}, ...inline(paragraph(lines)));
  }
}

/** Lines of a paragraph; models mean the breaks that they write. */
const paragraph = (lines) => lines.map((line) => line.trim().replace(/\\$/, "")).join("\n");

function inner(lines, depth) {
  if (depth >= DEEPEST) return [make("p", { text: lines.join("\n") })];
  return blocks(lines).map((block) => nodeOf(block, depth + 1));
}

function fenced(lines) {
  const [, fence, language] = FENCE.exec(lines[0]);
  const margin = indent(lines[0]);
  const last = lines.at(-1).trim();
  const isClosed = lines.length > 1 && last.startsWith(fence) && !last.replaceAll(fence[0], "");
  const code = lines.slice(1, isClosed ? -1 : undefined)
    .map((line) => line.slice(Math.min(margin, indent(line)))).join("\n");
  return codeBlock(code, language.trim().split(/\s/, 1)[0]);
}

/** Below the page's own headings: a message's is the third level. */
function heading(line) {
  const [, signs, text] = HEADING.exec(line);
  return make(`h${Math.min(signs.length + 3, 6)}`, {}, ...inline(text.trim().replace(/\s#+$/, "")));
}

function list(lines, depth) {
  const [, margin, mark] = ITEM.exec(lines[0]);
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= margin.length) items.push([line.slice(item[0].length)]);
    else items.at(-1).push(line);
  }
  const isNumbered = /\d/.test(mark);
  const nodes = items.map((item) => make("li", {}, ...itemNodes(item, depth)));
  const start = isNumbered ? parseInt(mark, 10) : 1;
  return make(isNumbered ? "ol" : "ul", { start: start === 1 ? null : String(start) }, ...nodes);
}

function itemNodes([first, ...rest], depth) {
  const margins = rest.filter((line) => line.trim()).map(indent);
  const margin = margins.length ? Math.min(...margins) : 0;
  const nodes = inner([first, ...rest.map((line) => line.slice(Math.min(margin, indent(line))))],
    depth);
  // A single paragraph needs no element of its own.
  return nodes.flatMap((node, i) => (node.tagName === "P" && i === 0 ? [...node.childNodes] : [node]));
}

function table([head, , ...rows]) {
  const row = (line, tag) =>
    make("tr", {}, ...cells(line).map((cell) => make(tag, {}, ...inline(cell))));
  return make("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Table" },
    make("table", {}, make("thead", {}, row(head, "th")),
      make("tbody", {}, ...rows.map((line) => row(line, "td")))));
}

const cells = (line) => line.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1")
  .split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
