// The view of the configuration: its revisions, and what each changed.

import { button, el } from "./dom.js";
import { diff } from "./diff.js";
import { section } from "./section.js";
import { moment } from "./time.js";
import { fault, many } from "./words.js";

const sources = { start: "read when the edge started", refresh: "applied by a refresh", earlier: "in effect before what the log still tells" };

export class Revisions {
  title = "Configuration";
  #session;
  #revision = -1;
  #asking = false;

  constructor({ session }) {
    this.#session = session;
    this.list = el("ol", { class: "revisions" });
    this.document = el("pre", { tabindex: "0", role: "region", "aria-label": "Document in effect" });
    const shown = el("details", {}, el("summary", {}, "The document that is in effect"), this.document);
    shown.addEventListener("toggle", () => shown.open && this.#show());
    this.shown = shown;
    this.node = el("div", { class: "stack" }, section("revisions", "Revisions", null, this.list), section("document", "In effect", null, shown));
  }

  // update asks again when the revision is another one.
  update(picture) {
    if (picture.head.revision === this.#revision || this.#asking) return;
    this.#ask(picture.head.revision);
  }

  forget() {
    this.#revision = -1;
  }

  async #ask(revision) {
    this.#asking = true;
    try {
      const { revisions } = await this.#session.get("/config/history");
      this.#revision = revision;
      this.list.replaceChildren(...(revisions.length > 0 ? revisions.map((r, i) => item(r, i === 0)) : [el("li", { class: "empty" }, "No configuration was applied yet. ", el("code", {}, "iopctl refresh --dry-run"), " shows what the edge's file would do.")]));
      if (this.shown.open) await this.#show();
    } catch (e) {
      this.#revision = revision; // ask again at the next one, or by the button
      this.list.replaceChildren(el("li", { class: "trouble", role: "alert" }, `${fault(e)} `, button("Ask again", () => this.#ask(revision))));
    }
    this.#asking = false;
  }

  async #show() {
    try {
      const c = await this.#session.get("/config");
      this.document.textContent = c.document === null ? "none" : JSON.stringify(c.document, null, 2);
    } catch (e) {
      this.document.textContent = fault(e);
    }
  }
}

function item(r, newest) {
  const changes = r.changes ?? [];
  const left = r.changes_left ?? 0;
  const title = el("summary", {}, el("b", {}, `Revision ${r.revision}`), newest ? el("span", { class: "badge" }, "in effect") : null, " ", moment(Date.parse(r.time)),
    el("span", { class: "dim" }, ` ${sources[r.source] ?? r.source}${r.edge ? ` on ${r.edge}` : ""}`),
    el("span", { class: "dim" }, changes.length > 0 ? ` · ${many(changes.length + left, "change")}` : ""));
  const body = changes.length > 0 ? [diff(changes, `Changes of revision ${r.revision}`), left > 0 ? el("p", { class: "dim" }, `… and ${many(left, "other change")}.`) : null]
    : [el("p", { class: "dim" }, r.changes ? "It changed nothing that is in effect here." : "The first that the log tells of: there is nothing older to compare it with.")];
  return el("li", {}, el("details", { open: newest && changes.length > 0 }, title, ...body.filter(Boolean)));
}
