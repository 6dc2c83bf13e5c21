// The table of providers, and the sheet of one.

import { slots } from "./bar.js";
import { follow } from "./dialog.js";
import { el } from "./dom.js";
import { mark, stateCell } from "./mark.js";
import { command, facts } from "./section.js";
import { Table } from "./table.js";

const order = ["degraded", "unavailable", "draining", "full", "available", "disabled", "removed"];

export function providerTable(open) {
  return new Table({
    label: "Providers", sort: "id", key: (p) => p.id, open, tone: (p) => (p.connected ? null : "faint"),
    empty: el("div", {}, el("p", {}, "No provider is configured. A provider is a backend of a node: add the machine that it runs on, and the edge prints what to type there."),
      command("iopctl nodes add NAME"), el("p", { class: "dim" }, "or write nodes[].providers into the edge's file and "), command("iopctl refresh --dry-run")),
    columns: [
      { id: "id", title: "Provider", value: (p) => p.id, text: (p) => p.id, opens: true, wide: true },
      { id: "state", title: "State", value: (p) => `${order.indexOf(p.status)} ${p.status} ${p.health}`, cell: () => stateCell((p) => p.status) },
      { id: "slots", title: "Slots", value: (p) => (p.capacity ? p.in_flight / p.capacity : p.in_flight), number: false, cell: slots },
      { id: "queued", title: "Wanted by", value: (p) => p.queued, text: (p) => (p.queued === 0 ? "" : String(p.queued)), number: true, class: "p2" },
      { id: "node", title: "Node", value: (p) => p.node, text: (p) => p.node, class: "p3", wide: true },
      { id: "type", title: "Type", value: (p) => p.label || p.type, text: (p) => p.label || p.type, class: "p4", wide: true },
      { id: "cause", title: "Cause", value: (p) => p.cause ?? "", text: (p) => cause(p), class: "p5", wide: true },
    ],
  });
}

function cause(p) {
  if (p.cause) return p.cause;
  if (!p.connected && p.status === "unavailable") return `node ${p.node} is not connected`;
  if (p.draining) return "drained by an operator";
  return "";
}

// openProvider shows one. context: {picture, changed, actions}.
export function openProvider(id, { picture, changed, actions }) {
  follow(`Provider ${id}`, changed, {
    read: () => picture.providers.get(id),
    show: about,
    buttons: (p) => actions.buttons(actions.drain("provider", id, p.draining)),
  });
}

function about(p) {
  const bar = slots();
  bar.update(p);
  return [
    el("p", { class: "lead" }, mark(p.status), " ", why(p)), bar.node,
    facts([
      ["Node", p.node], ["Type", p.label ? `${p.label} (${p.type})` : p.type], ["Health", p.health], ["Enabled", p.enabled ? "yes" : "no: enabled is false in the configuration"],
      ["Waiters that could use it", String(p.queued)], ["of them long", p.long_queued > 0 ? String(p.long_queued) : null],
      ["Priority", `${p.priority} (lower wins ties)`], ["Link generation", String(p.generation)],
    ]),
    el("p", { class: "dim" }, "What its backend says of itself: ", command(`iopctl providers show ${p.id}`)),
  ];
}

function why(p) {
  switch (p.status) {
    case "available": return "It takes requests.";
    case "full": return "All its slots are taken.";
    case "draining": return p.draining ? "An operator drained it: it gets no new requests." : `Its node ${p.node} is drained: it gets no new requests.`;
    case "disabled": return "It is switched off in the configuration.";
    case "degraded": return `Its health check fails${p.cause ? `: ${p.cause}` : "."}`;
    case "unavailable": return `Node ${p.node} is not connected: start noded there, or see its log.`;
    case "removed": return "It is no longer in the configuration; what runs on it ends.";
  }
  return "";
}
