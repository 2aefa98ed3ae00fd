/** The page of a local server: conversations that this browser keeps, documents, one model. */

import { app, on } from "./app.js";
import { focusComposer, prepareComposer } from "./composer.js";
import { complain, connect, prepareKey } from "./connection.js";
import { prepareContextBar } from "./context_bar.js";
import { prepareDocumentCard } from "./document_card.js";
import { at } from "./dom.js";
import { prepareDrop } from "./drop.js";
import { prepareFind } from "./find.js";
import { follow } from "./follow.js";
import { openLibrary } from "./library.js";
import { prepareMessages } from "./messages.js";
import { prepareSettings } from "./settings.js";
import { prepareSidebar } from "./sidebar.js";
import { prepareTranscript } from "./transcript.js";
import { bytes } from "./words.js";

on("model", () => {
  const { id, edgeinfinite: { state_bytes: state } } = app.about;
  at("model").textContent = `${id} · ${state === null ? "exact attention, its cache on disk"
    : `${bytes(state)} of state, however long the text`}`;
});
on("unkept", complain);

const toEnd = follow(at("pane"), at("content"), at("newest"));
prepareMessages();
prepareDocumentCard();
prepareContextBar();
prepareSidebar(focusComposer);
prepareFind();
prepareTranscript();
prepareSettings();
prepareComposer(toEnd);
prepareDrop();
prepareKey();
openLibrary().then((isKept) => {
  if (!isKept) at("kept").textContent = "This browser keeps no data; a reload ends conversations.";
});
connect();
focusComposer();
