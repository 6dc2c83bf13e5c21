// What an operator should look at, in words.

import { el } from "./dom.js";
import { many } from "./words.js";

const SHOWN = 6;

// attention lists what is not as it should be: [{tone, text, hint}], the worst first.
export function attention(p) {
  const out = [];
  const h = p.head;
  if (!h.leader) out.push({ tone: "bad", text: "No leader: nothing is admitted", hint: "most replicas must run and reach each other" });
  for (const m of p.members) if (!m.reachable) out.push({ tone: "bad", text: `Replica ${m.id} does not answer`, hint: "see its process and its network" });
  if (h.queue.max > 0 && h.queue.pending >= h.queue.max * 0.8) {
    out.push({ tone: h.queue.pending >= h.queue.max ? "bad" : "warn", text: `The queue is ${h.queue.pending >= h.queue.max ? "full" : "nearly full"}: ${h.queue.pending} of ${h.queue.max}`, hint: "more is refused with 429 queue_full" });
  }
  const nodes = [...p.nodes.values()];
  group(out, "bad", nodes.filter((n) => !n.connected).map((n) => n.id), "Node", "is not connected", "are not connected", "start noded there, or see its log");
  const providers = [...p.providers.values()];
  for (const x of providers.filter((x) => x.status === "degraded").slice(0, 3)) out.push({ tone: "warn", text: `Provider ${x.id} is degraded`, hint: x.cause ?? "its health check fails" });
  group(out, "warn", providers.filter((x) => x.capacity !== null && x.connected && x.in_flight > x.capacity).map((x) => x.id), "Provider", "has more leases than slots", "have more leases than slots", "its capacity was lowered; it drains by itself");
  group(out, "calm", nodes.filter((n) => n.draining).map((n) => n.id), "Node", "is drained", "are drained", "end it when the work is done");
  group(out, "calm", providers.filter((x) => x.draining).map((x) => x.id), "Provider", "is drained", "are drained", "end it when the work is done");
  if (h.lag > 1000) out.push({ tone: "warn", text: `This replica is ${h.lag} entries behind`, hint: "what is shown is as old" });
  return out;
}

function group(out, tone, ids, noun, one, more, hint) {
  if (ids.length === 1) out.push({ tone, text: `${noun} ${ids[0]} ${one}`, hint });
  if (ids.length > 1) out.push({ tone, text: `${many(ids.length, noun.toLowerCase())} ${more}: ${ids.slice(0, 3).join(", ")}${ids.length > 3 ? " …" : ""}`, hint });
}

const signs = { bad: "✕", warn: "▲", calm: "◌" };

// attentionList makes the list and what updates it.
export function attentionList() {
  const node = el("ul", { class: "attention", "aria-label": "Needs attention" });
  let drawn = "";
  return {
    node,
    update(picture) {
      const all = attention(picture);
      const text = JSON.stringify(all);
      if (text === drawn) return;
      drawn = text;
      const items = all.slice(0, SHOWN).map((a) => el("li", { data: { tone: a.tone } }, el("span", { class: "sign", "aria-hidden": "true" }, signs[a.tone]), el("span", {}, a.text, el("span", { class: "dim" }, ` – ${a.hint}`))));
      if (all.length > SHOWN) items.push(el("li", {}, `… and ${all.length - SHOWN} more`));
      node.replaceChildren(...items);
      node.hidden = all.length === 0;
    },
  };
}
