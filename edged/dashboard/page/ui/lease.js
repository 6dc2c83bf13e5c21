// The table of leases: what runs, and where.

import { el } from "./dom.js";
import { stateCell } from "./mark.js";
import { Table } from "./table.js";
import { span } from "./words.js";

export function leaseTable(open) {
  return new Table({
    label: "Leases", sort: "id", key: (l) => l.id, open,
    empty: el("p", {}, "Nothing runs. A request that holds a slot is listed here."),
    columns: [
      { id: "id", title: "Lease", value: (l) => l.id, find: (l) => String(l.id), text: (l) => String(l.id), number: true, first: "up" },
      { id: "request", title: "Request", value: (l) => l.request, text: (l) => l.request, opens: true, wide: true },
      { id: "age", title: "Runs", value: (l) => -l.granted_at_ms, text: (l, now) => span(now - l.granted_at_ms), number: true },
      { id: "provider", title: "Provider", value: (l) => l.provider, text: (l) => l.provider, wide: true },
      { id: "model", title: "Model", value: (l) => l.model, text: (l) => l.model, class: "p2", wide: true },
      { id: "state", title: "State", value: (l) => l.state, cell: () => stateCell((l) => l.state), class: "p3" },
      { id: "class", title: "Class", value: (l) => l.class, text: (l) => l.class, class: "p4" },
      { id: "node", title: "Node", value: (l) => l.node, text: (l) => `${l.node} · ${l.generation}`, class: "p4", wide: true },
      { id: "edge", title: "Edge", value: (l) => l.edge, text: (l) => l.edge, class: "p5", wide: true },
    ],
  });
}
