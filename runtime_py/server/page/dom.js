/** Elements. Text is only ever set as text: nothing here, or anywhere, parses HTML. */

export const at = (id) => document.getElementById(id);

/** An element. Names that begin with "on" are listeners, `text` is its text, false leaves out. */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "text") made.textContent = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A button with words on it. */
export const button = (text, onclick, more = {}) =>
  make("button", { type: "button", text, onclick, ...more });

/** A button with a picture on it, and the words for who doesn't see it. */
export const iconButton = (picture, label, onclick, more = {}) => make("button", {
  type: "button", class: "icon", "aria-label": label, title: label, onclick, ...more,
}, icon(picture));

const SHAPES = {
  menu: "M4 7h16M4 12h16M4 17h16",
  settings: "M4 7h8M17 7h3M4 17h3M12 17h8M12 7a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0"
    + "M7 17a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0",
  rename: "M5 19l1-4L16 5l3 3L9 18l-4 1z",
  remove: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  attach: "M8 12l5-5a3 3 0 0 1 4 4l-7 7a5 5 0 0 1-7-7l7-7",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  down: "M12 5v14M6 13l6 6 6-6",
  close: "M6 6l12 12M18 6L6 18",
};

/** A picture drawn in the text's colour. */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const line = document.createElementNS(space, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  line.setAttribute("d", SHAPES[name]);
  svg.append(line);
  return svg;
}
