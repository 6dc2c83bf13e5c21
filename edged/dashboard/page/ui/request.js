// The sheet of a request: where it is, why it waits, what happened to it. It is read again while it is open.

import { sheet } from "./dialog.js";
import { el, say } from "./dom.js";
import { mark } from "./mark.js";
import { facts, plain } from "./section.js";
import { moment } from "./time.js";
import { fault, many, span } from "./words.js";

const EVERY = 2000;

// openRequest shows one. context: {session, actions}.
export async function openRequest(id, { session, actions }) {
  const s = sheet(`Request ${id}`);
  s.body.append(el("p", { class: "dim" }, "Asking the edge…"));
  const stop = new AbortController();
  s.closed.then(() => stop.abort());
  let shown = "";
  let waiting = null;
  while (!stop.signal.aborted) {
    try {
      const r = await session.get(`/requests/${encodeURIComponent(id)}`, stop.signal);
      const { text, nodes } = describe(r);
      if (text !== shown) s.body.replaceChildren(...nodes);
      shown = text;
      const waits = r.waiter !== null;
      if (waits !== waiting) s.foot.replaceChildren(...(waits ? actions.buttons(actions.cancel(id, s.close)) : []));
      waiting = waits;
      if (r.state === "ended") return;
    } catch (e) {
      if (stop.signal.aborted) return;
      s.body.replaceChildren(el("p", { class: "trouble", role: "alert" }, fault(e)));
      s.foot.replaceChildren();
      shown = "";
      if (e.status === 404 || e.status === 401) return;
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

// describe gives the nodes, and a text that is the same as long as they would be.
function describe(r) {
  const nodes = [summary(r), facts(about(r))];
  if (r.explanation) nodes.push(...reasons(r.explanation));
  if (r.story) nodes.push(...story(r.story));
  return { text: JSON.stringify({ ...r, waiter: r.waiter && { ...r.waiter, age_ms: Math.floor(r.waiter.age_ms / EVERY) } }), nodes };
}

function summary(r) {
  const p = el("p", { class: "lead" }, mark(r.state), " ");
  if (r.waiter) {
    const c = r.explanation?.candidates ?? [];
    const ahead = r.explanation?.ahead_count ?? 0;
    const before = ahead === 0 ? "nobody before it wants the same slots" : `${many(ahead, "request")} before it could take the same slots`;
    p.append(`Number ${r.waiter.position} in the queue; ${before}; ${c.length === 0 ? "no provider can take it" : `${many(c.length, "provider")} could take it`}.`);
  } else if (r.lease) p.append(`It runs on provider ${r.lease.provider} of node ${r.lease.node}.`);
  else p.append("It is over. What is known of it:");
  return p;
}

function about(r) {
  const w = r.waiter;
  return [
    ["Model", r.model], ["Class", r.class], ["Edge", w?.edge ?? r.lease?.edge], ["Estimated input", r.input_tokens > 0 ? many(r.input_tokens, "token") : null],
    ["Asked at", when(r.enqueued_at)], ["Has waited", w ? span(w.age_ms) : r.lease ? span(r.lease.waited_ms) : null],
    ["Ends in", w ? (w.deadline_in_ms === null ? "no deadline" : span(w.deadline_in_ms)) : null],
    ["Lease", r.lease ? `${r.lease.id}, generation ${r.lease.generation}` : null], ["Granted at", r.lease ? when(r.lease.granted_at) : null],
    ["Fell over from", r.excluded?.length > 0 ? r.excluded.join(", ") : null],
  ];
}

const when = (text) => (text && !text.startsWith("0001") ? moment(Date.parse(text)) : null);

function reasons(x) {
  const out = [el("h3", {}, "Providers that could take it"),
    plain("Candidates", ["Provider", "State", "Taken", "What has to happen"], x.candidates.map((c) => [
      el("span", {}, c.provider, el("span", { class: "dim" }, ` on ${c.node}`)), c.dispatchable ? mark("available", "free") : mark(reasonState[c.reason] ?? "waiting", c.reason.replaceAll("_", " ")),
      c.capacity === 0 ? `${c.in_flight}` : `${c.in_flight} of ${c.capacity}`, c.needed]))];
  if (x.ahead.length > 0) {
    out.push(el("h3", {}, "Before it"), plain("Requests before it", ["#", "Request", "Model", "Class"], x.ahead.map((a) => [String(a.position), a.request, a.model, a.class])));
    if (x.ahead_count > x.ahead.length) out.push(el("p", { class: "dim" }, `… and ${many(x.ahead_count - x.ahead.length, "other")}.`));
  }
  return out;
}

const reasonState = { full: "full", long_full: "full", offline: "offline", draining: "draining", degraded: "degraded", excluded: "unavailable", too_small: "unavailable", incapable: "unavailable" };

function story(x) {
  if (x.lines.length === 0) return [];
  const list = el("ol", { class: "story" });
  for (const l of x.lines) {
    const line = el("li", {}, when(l.time), " ", el("span", {}, l.text || `${l.command}: ${l.outcome}`));
    list.append(line);
  }
  const note = el("p", { class: "dim" });
  say(note, x.dropped > 0 ? `${many(x.dropped, "older line")} left out. ` : x.complete ? "" : "Older entries were not looked at: time ran out.");
  return [el("h3", {}, "What happened"), list, note];
}
