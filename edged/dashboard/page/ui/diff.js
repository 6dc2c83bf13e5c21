// What a revision changed, path by path: the old value and the new one, told apart by signs too.

import { el } from "./dom.js";

// diff makes the table of changes: [{path, old, new}], where null is "not there".
export function diff(changes, label) {
  return el("div", { class: "plain", role: "region", "aria-label": label, tabindex: "0" },
    el("table", { class: "diff", "aria-label": label },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Path"), el("th", { scope: "col" }, "Before"), el("th", { scope: "col" }, "After"))),
      el("tbody", {}, ...changes.map((c) => el("tr", {}, el("th", { scope: "row" }, el("span", { class: "any" }, c.path)), side("−", "old", c.old), side("+", "new", c.new))))));
}

function side(sign, kind, value) {
  if (value === null || value === undefined) return el("td", { class: "dim" }, kind === "old" ? "was not there" : "is gone");
  return el("td", {}, el("span", { class: `value-${kind} any` }, el("span", { class: "sign", "aria-hidden": "true" }, sign), " ", text(value)));
}

function text(value) {
  const whole = typeof value === "string" ? value : JSON.stringify(value, null, typeof value === "object" ? 1 : 0);
  return whole.length > 2000 ? `${whole.slice(0, 2000)} …` : whole;
}
