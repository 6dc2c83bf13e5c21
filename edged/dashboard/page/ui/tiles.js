// The numbers at a glance.

import { el, put, say, show, widen } from "./dom.js";
import { brief, count, rate, took } from "./words.js";

const RECENT = 10; // seconds that rates are of

export function tiles() {
  const made = [
    tile("Waiting", (p) => ({ value: count(p.head.queue.pending), of: p.head.queue.max > 0 ? `of ${count(p.head.queue.max)}` : "", share: p.head.queue.pending / (p.head.queue.max || 1), note: p.head.queue.long_pending > 0 ? `· ${count(p.head.queue.long_pending)} long` : "" })),
    tile("Running", (p) => running(p)),
    tile("Requests", (p) => per(p, (s) => s.requests, "/s")),
    tile("Errors", (p) => per(p, (s) => s.errors, "/s")),
    tile("Wait p90", (p) => last(p, (s) => s.wait_ms?.p90)),
    tile("First byte p90", (p) => last(p, (s) => s.first_byte_ms?.p90)),
    tile("Tokens out", (p) => per(p, (s) => s.tokens_out, "/s")),
    tile("Providers", (p) => available(p)),
  ];
  return { node: el("dl", { class: "tiles" }, ...made.map((t) => t.node)), update: (p) => made.forEach((t) => t.update(p)) };
}

function tile(name, read) {
  const value = el("span", { class: "value" });
  const of = el("span", { class: "of" });
  const note = el("span", { class: "note-small" });
  const fill = el("i");
  const meter = el("span", { class: "meter", "aria-hidden": "true" }, fill);
  const node = el("div", { class: "tile" }, el("dt", {}, name), el("dd", {}, value, of, note, meter));
  return {
    node,
    update(p) {
      const x = read(p);
      say(value, x.value);
      say(of, x.of ?? "");
      say(note, x.note ?? "");
      show(meter, x.share !== undefined);
      if (x.share === undefined) return;
      widen(fill, x.share);
      put(node, "data-tone", name !== "Waiting" || x.share < 0.8 ? null : x.share < 1 ? "warn" : "bad");
    },
  };
}

function running(p) {
  let capacity = 0;
  for (const x of p.providers.values()) {
    if (!x.connected) continue;
    if (x.capacity === null) capacity = Infinity;
    capacity += x.capacity ?? 0;
  }
  const n = p.leases.size;
  return { value: count(n), of: `of ${capacity === Infinity ? "∞" : count(capacity)} slots`, share: capacity > 0 && capacity !== Infinity ? n / capacity : 0 };
}

function recent(p) {
  return p.seconds.slice(-RECENT);
}

function per(p, get, of) {
  const list = recent(p);
  const seconds = list.reduce((sum, s) => sum + s.step_ms, 0) / 1000;
  const n = list.reduce((sum, s) => sum + get(s), 0);
  const value = seconds > 0 ? n / seconds : 0;
  return { value: value < 1000 ? rate(value) : brief(value), of };
}

// last is the newest that was measured within a minute.
function last(p, get) {
  for (const s of p.seconds.slice(-60).reverse()) {
    const v = get(s);
    if (v !== null && v !== undefined) return { value: took(v), of: "" };
  }
  return { value: "–", of: "" };
}

function available(p) {
  let fit = 0;
  for (const x of p.providers.values()) if (x.status === "available" || x.status === "full") fit++;
  return { value: count(fit), of: `of ${count(p.providers.size)} fit` };
}
