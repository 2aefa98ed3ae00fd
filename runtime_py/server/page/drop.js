/** Files that are dropped on the page, chosen or pasted. */

import { at } from "./dom.js";
import { openDocuments } from "./reading.js";

export function prepareDrop() {
  const open = (files) => openDocuments([...files]);
  const hasFiles = (event) => [...event.dataTransfer?.types ?? []].includes("Files");
  at("file").addEventListener("change", () => {
    open(at("file").files);
    at("file").value = "";  // so that the same file can be chosen again
  });
  for (const id of ["choose", "attach"]) {
    at(id).addEventListener("click", () => at("file").click());
  }
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    at("over").hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) at("over").hidden = true;
  });
  addEventListener("drop", (event) => {
    at("over").hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    open(event.dataTransfer.files);
  });
  at("question").addEventListener("paste", (event) => {
    if (!event.clipboardData.files.length) return;
    event.preventDefault();
    open(event.clipboardData.files);
  });
}
