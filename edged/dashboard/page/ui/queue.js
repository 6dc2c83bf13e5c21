// The table of the queue: who waits, in which place, for what.

import { el } from "./dom.js";
import { Table } from "./table.js";
import { span } from "./words.js";

export function queueTable(open) {
  return new Table({
    label: "Waiting requests", sort: "place", key: (w) => w.request, open, tone: (w) => (w.state === "detached" ? "faint" : null),
    empty: el("p", {}, "Nobody waits: every request gets its slot at once."),
    columns: [
      { id: "place", title: "#", value: (w) => w.position, text: (w) => String(w.position), number: true, first: "up" },
      { id: "request", title: "Request", value: (w) => w.request, text: (w) => w.request, opens: true, wide: true },
      { id: "age", title: "Waits", value: (w) => -w.enqueued_at_ms, text: (w, now) => span(now - w.enqueued_at_ms), number: true },
      { id: "why", title: "Waits for", value: (w) => reason(w), text: (w) => reason(w), wide: true },
      { id: "model", title: "Model", value: (w) => w.model, text: (w) => w.model, class: "p2", wide: true },
      { id: "class", title: "Class", value: (w) => w.class, text: (w) => w.class, class: "p4" },
      { id: "principal", title: "Principal", value: (w) => w.principal, text: (w) => w.principal || "–", class: "p3", wide: true },
      { id: "deadline", title: "Ends in", value: (w) => w.deadline_at_ms || Infinity, text: (w, now) => (w.deadline_at_ms ? span(w.deadline_at_ms - now) : "–"), number: true, first: "up", class: "p5" },
      { id: "edge", title: "Edge", value: (w) => w.edge, text: (w) => w.edge, class: "p5", wide: true },
    ],
  });
}

const reason = (w) => (w.state === "detached" && !w.waits_for ? "its client to come back" : w.waits_for);
