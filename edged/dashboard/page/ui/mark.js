// A state as a sign and a word, so that it is never told by its colour alone.

import { el, put, say } from "./dom.js";

const signs = { good: "●", busy: "◆", calm: "◌", warn: "▲", bad: "✕" };

const tones = {
  available: "good", healthy: "good", ready: "good", held: "good", live: "good", leader: "good", follower: "good", voter: "good", connected: "good",
  full: "busy", long: "busy",
  waiting: "calm", pending: "calm", disabled: "calm", removed: "calm", learner: "calm", normal: "calm", connecting: "calm", paused: "calm",
  draining: "warn", degraded: "warn", fencing: "warn", fenced: "warn", detached: "warn", candidate: "warn", recovering: "warn", reconnecting: "warn",
  unavailable: "bad", offline: "bad", unreachable: "bad", "no leader": "bad", "needs token": "bad",
};

export const tone = (state) => tones[state] ?? "calm";

// mark makes the sign and word of a state.
export function mark(state, word = state) {
  const node = el("span", { class: "mark" }, el("span", { class: "sign", "aria-hidden": "true" }), el("span", { class: "word" }));
  remark(node, state, word);
  return node;
}

// stateCell is a cell of a table that shows what read gives of its row.
export function stateCell(read) {
  const node = mark("waiting");
  return { node, update: (row) => remark(node, read(row)) };
}

// remark changes it to another state.
export function remark(node, state, word = state) {
  const t = tone(state);
  put(node, "data-tone", t);
  say(node.firstChild, signs[t]);
  say(node.lastChild, word);
}
