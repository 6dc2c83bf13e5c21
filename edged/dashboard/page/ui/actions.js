// What the viewer may change: drain, undrain, cancel. Each is asked about first, and the edge has the last word.

import { confirm } from "./dialog.js";
import { button, el } from "./dom.js";
import { notice, trouble } from "./notice.js";

// readOnly says why nothing can be changed, by the edge's word for what the viewer may.
export const readOnly = {
  token_needed: "Read-only: the edge has no edge.admin.token, so a page can't prove who sits before it. Set one in the edge's file and restart it to drain and cancel from here; iopctl can without.",
  read_only: "Read-only: you are signed in with the view token. To drain and cancel, sign out and in again with the admin token (edge.admin.token).",
};

export class Actions {
  #session;
  #may;

  // may() gives the edge's word: allowed, token_needed, read_only.
  constructor(session, may) {
    this.#session = session;
    this.#may = may;
  }

  // buttons gives those that are allowed, or a note why none is.
  buttons(...made) {
    const may = this.#may();
    if (may === "allowed") return made;
    return [el("p", { class: "dim" }, readOnly[may] ?? readOnly.read_only)];
  }

  // drain gives the button that drains a node or provider, or ends that. kind: node, provider.
  drain(kind, id, draining, then) {
    if (draining) return button("End draining", () => this.#drain(kind, id, false, then));
    return button("Drain…", () => this.#drain(kind, id, true, then));
  }

  cancel(request, then) {
    return button("Cancel this request…", () => this.#cancel(request, then), { class: "danger" });
  }

  async #drain(kind, id, on, then) {
    const text = on
      ? "It gets no new requests. What runs on it goes on to its end; what waits may go elsewhere. It stays drained, over restarts, until you end it."
      : "It gets new requests again, at once if some wait.";
    if (!(await confirm(on ? `Drain ${kind} ${id}?` : `End the draining of ${kind} ${id}?`, text, on ? "Drain it" : "End it"))) return;
    await this.#do(on ? `Drain ${kind} ${id}` : `End the draining of ${kind} ${id}`, () => this.#session.post("/drain", { [kind]: id, on }),
      on ? `${kind} ${id} gets no new requests` : `${kind} ${id} gets new requests again`, then);
  }

  async #cancel(request, then) {
    const text = "It leaves the queue, and its client is told canceled_by_operator. This can't be taken back.";
    if (!(await confirm(`Cancel request ${request}?`, text, "Cancel the request"))) return;
    await this.#do(`Cancel ${request}`, () => this.#session.post(`/queue/${encodeURIComponent(request)}/cancel`), `${request} has left the queue`, then);
  }

  async #do(doing, call, done, then) {
    try {
      await call();
      notice(done);
      then?.();
    } catch (e) {
      trouble(doing, e);
    }
  }
}
