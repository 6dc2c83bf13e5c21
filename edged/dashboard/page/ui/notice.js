// What came of an action, or what went wrong with its cure: seen, and said to screen readers.

import { button, el } from "./dom.js";

const STAY = 8000;

// notice shows a sentence; an error stays until it is dismissed.
export function notice(text, { cure = "", bad = false, action = null } = {}) {
  const node = el("div", { class: "notice", data: { tone: bad ? "bad" : "good" } },
    el("p", {}, el("span", { class: "sign", "aria-hidden": "true" }, bad ? "✕ " : "● "), text), cure ? el("p", { class: "cure" }, cure) : null, action,
    button("✕", () => node.remove(), { class: "icon", "aria-label": "Dismiss" }));
  shelf().append(node);
  document.getElementById("said").textContent = cure ? `${text} ${cure}` : text;
  if (!bad && !action) setTimeout(() => node.remove(), STAY);
}

// trouble shows an error of a call.
export const trouble = (doing, e) => notice(`${doing}: ${e.message}`, { cure: e.cure ?? "", bad: true });

// shelf is where notices lie: a popover, above all else; in an open dialog, because what is outside of one can't be pressed.
function shelf() {
  let node = document.getElementById("notices");
  if (!node) node = el("div", { id: "notices", popover: "manual" });
  const home = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  if (node.parentNode !== home) home.append(node);
  if (!node.matches(":popover-open")) node.showPopover();
  return node;
}

// rehouse keeps the notices of a dialog that goes.
export function rehouse(dialog) {
  const node = document.getElementById("notices");
  if (!node || !dialog.contains(node)) return;
  document.body.append(node);
  node.showPopover();
}
