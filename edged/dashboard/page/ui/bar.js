// A provider's slots: how many are taken, how many of those by long requests, and how many there are. The numbers beside
// the bar say the same.

import { el, put, say, show, widen } from "./dom.js";

// slots makes the cell of a provider.
export function slots() {
  const long = el("i", { class: "long" });
  const normal = el("i", { class: "normal" });
  const bar = el("span", { class: "bar", "aria-hidden": "true" }, long, normal, el("i", { class: "grid" }));
  const quota = el("span", { class: "quota", "aria-hidden": "true" }, el("i"));
  const all = el("span", { class: "slots-all" });
  const longs = el("span", { class: "slots-long" });
  const node = el("span", { class: "slots" }, el("span", { class: "bars" }, bar, quota), el("span", { class: "slots-text" }, all, longs));
  return { node, update: (p) => update({ bar, long, normal, quota, all, longs }, p) };
}

function update(x, p) {
  const capacity = p.capacity;
  const room = capacity ?? Math.max(p.in_flight, 1);
  widen(x.long, p.long_in_flight / Math.max(room, 1));
  widen(x.normal, (p.in_flight - p.long_in_flight) / Math.max(room, 1));
  const grid = capacity !== null && capacity > 1 && capacity <= 24 ? String(capacity) : "1";
  if (x.bar.dataset.grid !== grid) {
    x.bar.dataset.grid = grid;
    x.bar.style.setProperty("--slots", grid);
  }
  put(x.bar, "data-kind", capacity === null ? "unlimited" : capacity === 0 ? "none" : p.in_flight >= capacity ? "full" : "some");
  say(x.all, !p.connected ? "–" : capacity === null ? `${p.in_flight} of ∞` : `${p.in_flight} of ${capacity}`);
  const counted = p.connected && p.long_capacity !== null && p.long_capacity !== undefined;
  show(x.quota, counted);
  say(x.longs, counted ? `long ${p.long_in_flight} of ${p.long_capacity}` : p.long_in_flight > 0 ? `long ${p.long_in_flight}` : "");
  if (!counted) return;
  widen(x.quota, capacity ? Math.min(1, p.long_capacity / capacity) : p.long_capacity > 0 ? 1 : 0);
  widen(x.quota.firstChild, p.long_capacity > 0 ? p.long_in_flight / p.long_capacity : 0);
}
