// The view of the cluster: its replicas, the nodes and their links.

import { follow } from "./dialog.js";
import { el } from "./dom.js";
import { mark, stateCell } from "./mark.js";
import { command, facts, plain, section } from "./section.js";
import { Table } from "./table.js";
import { count } from "./words.js";

export class Cluster {
  title = "Cluster";

  constructor(context) {
    this.members = memberTable();
    this.nodes = nodeTable((n) => openNode(n.id, context));
    this.numbers = el("div");
    this.node = el("div", { class: "stack" },
      section("members", "Replicas", this.members.tools, this.numbers, this.members.node),
      section("nodes", "Nodes and their links", this.nodes.tools, this.nodes.node));
  }

  update(picture) {
    const h = picture.head;
    const text = JSON.stringify([h.leader, h.term, h.applied_index, h.lag]);
    if (text !== this.drawn) {
      this.drawn = text;
      this.numbers.replaceChildren(facts([["Leader", h.leader || "none"], ["Term", count(h.term)], ["Applied here", count(h.applied_index)], ["Behind", h.lag > 0 ? count(h.lag) : "nothing"]]));
    }
    this.members.update(picture.members, picture.now);
    this.nodes.update([...picture.nodes.values()], picture.now);
  }
}

function memberTable() {
  return new Table({
    label: "Replicas", sort: "id", key: (m) => m.id,
    empty: el("div", {}, el("p", {}, "This edge is alone. Two more make it survive the loss of one:"), command("iopctl cluster add ID ADDRESS")),
    columns: [
      { id: "id", title: "Replica", value: (m) => m.id, text: (m) => m.id, wide: true },
      { id: "state", title: "State", value: (m) => (m.reachable ? m.role : "unreachable"), cell: () => stateCell((m) => (m.reachable ? (m.leader ? "leader" : m.role || "follower") : "unreachable")) },
      { id: "suffrage", title: "Vote", value: (m) => m.suffrage, text: (m) => m.suffrage, class: "p2" },
      { id: "applied", title: "Applied", value: (m) => m.applied, text: (m) => (m.reachable ? count(m.applied) : "–"), number: true, class: "p2" },
      { id: "lag", title: "Behind", value: (m) => m.lag, text: (m) => (m.reachable ? count(m.lag) : "–"), number: true },
      { id: "version", title: "Version", value: (m) => m.version, text: (m) => m.version || "–", class: "p3", wide: true },
      { id: "address", title: "Address", value: (m) => m.address, text: (m) => m.address || "none", class: "p4", wide: true },
    ],
  });
}

function nodeTable(open) {
  return new Table({
    label: "Nodes", sort: "id", key: (n) => n.id, open, tone: (n) => (n.connected ? null : "faint"),
    empty: el("div", {}, el("p", {}, "No node yet. A node is a machine with backends on it: this prints the line that makes one of it."), command("iopctl nodes add NAME")),
    columns: [
      { id: "id", title: "Node", value: (n) => n.id, text: (n) => n.id, opens: true, wide: true },
      { id: "state", title: "State", value: (n) => nodeState(n), cell: () => stateCell(nodeState) },
      { id: "links", title: "Links", value: (n) => n.links.map((l) => `${l.edge} ${l.state}`).join(" "), text: (n) => n.links.map((l) => (l.state === "ready" ? l.edge : `${l.edge} (${l.state})`)).join(", ") || "none", wide: true },
      { id: "alias", title: "Alias", value: (n) => n.alias, text: (n) => n.alias || "–", class: "p3", wide: true },
      { id: "version", title: "Version", value: (n) => n.version, text: (n) => n.version || "–", class: "p4", wide: true },
    ],
  });
}

const nodeState = (n) => (!n.connected ? "offline" : n.draining ? "draining" : "connected");

function openNode(id, { picture, changed, actions }) {
  follow(`Node ${id}`, changed, {
    read: () => {
      const n = picture.nodes.get(id);
      return n && { ...n, providers: [...picture.providers.values()].filter((p) => p.node === id) };
    },
    show: about,
    buttons: (n) => actions.buttons(actions.drain("node", id, n.draining)),
  });
}

function about(n) {
  return [
    el("p", { class: "lead" }, mark(nodeState(n)), " ", n.connected ? (n.draining ? "Its providers get no new requests." : "It is linked.") : "It has no link: start noded there, or see its log."),
    facts([["Alias", n.alias], ["Version", n.version]]),
    el("h3", {}, "Links"), n.links.length === 0 ? el("p", { class: "dim" }, "None.") : plain("Links", ["Edge", "Generation", "State"], n.links.map((l) => [l.edge, String(l.generation), mark(l.state)])),
    el("h3", {}, "Providers"), n.providers.length === 0 ? el("p", { class: "dim" }, "None.") : plain("Providers of the node", ["Provider", "State", "Runs"], n.providers.map((p) => [p.id, mark(p.status), `${p.in_flight} of ${p.capacity ?? "∞"}`])),
  ];
}
