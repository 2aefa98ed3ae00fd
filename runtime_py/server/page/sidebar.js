/** The list of conversations: opening, renaming, deleting; on phones a drawer. */

import { app, jobOf, on } from "./app.js";
import { at, icon, iconButton, make } from "./dom.js";
import { clearFind, found } from "./find.js";
import { listed, remove, rename, show, startNew } from "./library.js";
import { toast } from "./toast.js";

let renamed = null;  // the id of the conversation whose title is being edited

export function prepareSidebar(afterwards) {
  on("list", draw);
  at("menu").append(icon("menu"));
  at("menu").addEventListener("click", () => open(!isOpen()));
  at("shade").addEventListener("click", () => open(false));
  at("new").addEventListener("click", () => {
    clearFind();
    startNew();
    open(false);
    afterwards();
  });
  at("sidebar").addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    event.stopPropagation();
    open(false);
    at("menu").focus();
  });
  draw();

  function draw() {
    const focused = document.activeElement?.dataset?.focus;
    const rows = found(listed()).map(row);
    const isNone = app.conversations.size && !rows.length;
    at("conversations").replaceChildren(
      ...isNone ? [make("li", { class: "quiet", text: "None has these words." })] : rows);
    if (focused) at("conversations").querySelector(`[data-focus="${focused}"]`)?.focus();
    at("title").textContent = app.current.title;
    document.title = app.current.title === "New chat" ? "EdgeInfinite"
      : `${app.current.title} · EdgeInfinite`;
  }

  function row(conversation) {
    const { id, title } = conversation;
    if (id === renamed) return make("li", {}, field(conversation));
    const isCurrent = conversation === app.current;
    return make("li", { class: isCurrent ? "current" : null },
      make("button", {
        type: "button", class: "open", title, "data-focus": `open-${id}`,
        "aria-current": isCurrent ? "true" : null,
        onclick: () => { show(conversation); open(false); afterwards(); },
      }, title, jobOf(conversation) ? make("span", { class: "working", text: " · at work" }) : null),
      iconButton("rename", `Rename ${title}`, () => { renamed = id; draw(); }),
      iconButton("remove", `Delete ${title}`, async () => {
        toast(`“${title}” was deleted.`, await remove(conversation));
      }));
  }

  function field(conversation) {
    const input = make("input", { "aria-label": "Name of the conversation", maxlength: "200" });
    let isOver = false;
    const end = (isKept) => {
      if (isOver) return;  // drawing again takes the focus, which is an end, too
      isOver = true;
      renamed = null;
      const title = input.value.trim();
      if (isKept && title) rename(conversation, title);
      draw();
      at("conversations").querySelector(`[data-focus="open-${conversation.id}"]`)?.focus();
    };
    input.value = conversation.title;
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) end(true);
      if (event.key === "Escape") {
        event.stopPropagation();
        end(false);
      }
    });
    input.addEventListener("blur", () => end(true));
    queueMicrotask(() => input.select());
    return input;
  }
}

const isOpen = () => document.body.classList.contains("drawer");

function open(wanted) {
  document.body.classList.toggle("drawer", wanted);
  at("menu").setAttribute("aria-expanded", String(wanted));
  at("shade").hidden = !wanted;
  if (wanted) at("new").focus();
}
