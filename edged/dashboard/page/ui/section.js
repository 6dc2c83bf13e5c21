// A part of the page with its heading.

import { el } from "./dom.js";

// section makes one: id names its heading, tools stand beside it.
export function section(id, title, tools, ...content) {
  const heading = el("h2", { id: `${id}-heading` }, title);
  return el("section", { class: `card s-${id}`, id, "aria-labelledby": heading.id }, el("div", { class: "card-head" }, heading, tools), ...content);
}

// facts is a list of names and values. A value is a string or a node; null leaves the pair out.
export function facts(pairs) {
  const list = el("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  }
  return list;
}

// plain is a small table of strings or nodes that is not sorted.
export function plain(label, heads, rows) {
  return el("div", { class: "plain", role: "region", "aria-label": label, tabindex: "0" },
    el("table", { "aria-label": label },
      el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map(cell))))));
}

// cell keeps a short text in one line, and breaks a long one wherever it must.
function cell(c) {
  if (typeof c !== "string") return el("td", {}, c);
  return c.length > 16 ? el("td", {}, el("span", { class: "any" }, c)) : el("td", { class: "short" }, c);
}

// command shows what is to be typed.
export const command = (text) => el("code", { class: "command" }, text);
