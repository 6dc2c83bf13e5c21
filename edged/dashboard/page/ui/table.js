// A table of thousands of rows, of which only those in sight are in the document. It is a real table: the rows tell their
// number, the heads sort, and if rows can be opened, one of them at a time is reached by Tab and the others by the arrows.

import { button, el, put, say, show } from "./dom.js";
import { count } from "./words.js";

const BEYOND = 6; // rows drawn above and below those in sight

// Options: name (of the section), label (what it lists, plural), columns, key(row), open(row) if rows can be opened,
// sort (a column's id, with - for descending), empty (a node, shown while there are no rows at all).
// A column: id, title, value(row) to sort and filter by, find(row) to filter by something else, text(row, now) or cell() → {node, update(row, now)}, number (right-aligned), class.
export class Table {
  #o;
  #all = [];
  #rows = [];
  #now = 0;
  #sort = "";
  #words = [];
  #active = null; // key of the row that Tab reaches
  #activeAt = 0;
  #drawn = new Map();
  #free = [];
  #height = 0;
  #row = 28;
  #asked = 0;

  constructor(options) {
    this.#o = options;
    this.#sort = options.sort;
    this.#build();
  }

  // update gives the table its rows, in any order; now is the time that ages count to.
  update(rows, now) {
    this.#all = rows;
    this.#now = now;
    this.#arrange();
    this.#draw();
  }

  #build() {
    const o = this.#o;
    this.before = el("tbody", { class: "spacer", "aria-hidden": "true" }, el("tr", {}, el("td", { colspan: o.columns.length })));
    this.after = this.before.cloneNode(true);
    this.body = el("tbody");
    this.heads = o.columns.map((c) => this.#head(c));
    this.table = el("table", { "aria-label": o.label }, el("thead", {}, el("tr", { "aria-rowindex": "1" }, ...this.heads)), this.before, this.body, this.after);
    this.view = el("div", { class: "scroller", role: "region", "aria-label": `${o.label}, scrollable`, tabindex: o.open ? "-1" : "0" }, this.table);
    this.view.addEventListener("scroll", () => this.#ask(), { passive: true });
    this.view.addEventListener("keydown", (e) => this.#key(e));
    this.body.addEventListener("click", (e) => this.#click(e));
    this.body.addEventListener("focusin", (e) => this.#focused(e));
    this.filter = el("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${o.label}`, autocomplete: "off", spellcheck: "false" });
    this.filter.addEventListener("input", () => this.#filtered());
    this.count = el("span", { class: "count" });
    this.none = el("div", { class: "empty" }, o.empty);
    this.nothing = el("p", { class: "empty" }, "Nothing fits the filter. ", button("Clear it", () => this.#clear(), { class: "link" }));
    this.tools = el("div", { class: "tools" }, this.count, this.filter);
    this.node = el("div", { class: "rows" }, this.view, this.none, this.nothing);
    new ResizeObserver(() => this.#measure()).observe(this.view);
    this.#arrow();
  }

  #head(c) {
    const sort = button(c.title, () => this.#by(c), { class: "sort" });
    sort.append(el("span", { class: "arrow", "aria-hidden": "true" }));
    return el("th", { scope: "col", class: classes(c) }, c.value ? sort : c.title);
  }

  #by(c) {
    const up = c.id;
    const down = `-${c.id}`;
    this.#sort = this.#sort === up ? down : this.#sort === down ? up : c.number && c.first !== "up" ? down : up;
    this.#arrow();
    this.#arrange();
    this.#draw();
  }

  #arrow() {
    this.#o.columns.forEach((c, i) => {
      const way = this.#sort === c.id ? "ascending" : this.#sort === `-${c.id}` ? "descending" : null;
      put(this.heads[i], "aria-sort", way);
    });
  }

  #filtered() {
    this.#words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.view.scrollTop = 0;
    this.#arrange();
    this.#draw();
  }

  #clear() {
    this.filter.value = "";
    this.#filtered();
    this.filter.focus();
  }

  // arrange filters and sorts.
  #arrange() {
    let rows = this.#all;
    if (this.#words.length > 0) {
      const columns = this.#o.columns.filter((c) => c.value);
      rows = rows.filter((r) => {
        const text = columns.map((c) => found(c, r)).join("\n").toLowerCase();
        return this.#words.every((w) => text.includes(w));
      });
    }
    const down = this.#sort.startsWith("-");
    const column = this.#o.columns.find((c) => c.id === (down ? this.#sort.slice(1) : this.#sort));
    const sign = down ? -1 : 1;
    const key = this.#o.key;
    // In two passes: the values are computed once for each row, and rows that are equal keep an order.
    const keyed = rows.map((row) => ({ row, v: column.value(row), k: key(row) }));
    keyed.sort((a, b) => sign * compare(a.v, b.v) || compare(a.k, b.k));
    this.#rows = keyed.map((x) => x.row);
    const n = this.#all.length;
    say(this.count, this.#words.length > 0 ? `${count(this.#rows.length)} of ${count(n)}` : count(n));
    show(this.none, n === 0);
    show(this.nothing, n > 0 && this.#rows.length === 0);
    show(this.view, this.#rows.length > 0);
    show(this.tools, n > 0);
    put(this.table, "aria-rowcount", this.#rows.length + 1);
  }

  #measure() {
    const row = parseFloat(getComputedStyle(this.view).getPropertyValue("--row-px")) || 28;
    if (this.view.clientHeight === this.#height && row === this.#row) return;
    this.#height = this.view.clientHeight;
    this.#row = row;
    this.#ask();
  }

  #ask() {
    if (this.#asked) return;
    this.#asked = requestAnimationFrame(() => {
      this.#asked = 0;
      this.#draw();
    });
  }

  // draw brings the rows in sight into the document.
  #draw() {
    const n = this.#rows.length;
    const sight = Math.ceil((this.#height || 10 * this.#row) / this.#row);
    const from = Math.max(0, Math.min(Math.floor(this.view.scrollTop / this.#row) - BEYOND, n - sight - 2 * BEYOND));
    const to = Math.min(n, from + sight + 2 * BEYOND);
    const held = this.body.contains(document.activeElement);
    this.#keepActive();
    const wanted = new Map();
    for (let i = from; i < to; i++) wanted.set(this.#o.key(this.#rows[i]), i);
    for (const [k, line] of this.#drawn) {
      if (wanted.has(k)) continue;
      this.#drawn.delete(k);
      this.#free.push(line);
      line.tr.remove(); // at once, so that the others need not be moved and the focus does not go on to another row
    }
    let at = this.body.firstChild;
    for (const [k, i] of wanted) {
      let line = this.#drawn.get(k);
      if (!line) {
        line = this.#free.pop() ?? this.#line();
        line.tr.dataset.key = k;
        this.#drawn.set(k, line);
      }
      this.#write(line, this.#rows[i], i, k);
      if (line.tr === at) at = at.nextSibling;
      else this.body.insertBefore(line.tr, at);
    }
    this.#free.length = Math.min(this.#free.length, 2 * BEYOND);
    height(this.before, from * this.#row);
    height(this.after, (n - to) * this.#row);
    if (held && !this.body.contains(document.activeElement)) this.#refocus();
  }

  // keepActive has Tab reach a row that is there.
  #keepActive() {
    if (!this.#o.open || this.#rows.length === 0) return;
    const key = this.#o.key;
    const same = this.#rows[this.#activeAt];
    if (same && key(same) === this.#active) return;
    let at = this.#active === null ? -1 : this.#rows.findIndex((r) => key(r) === this.#active);
    if (at < 0) at = Math.min(this.#activeAt, this.#rows.length - 1);
    this.#activeAt = at;
    this.#active = key(this.#rows[at]);
  }

  // refocus keeps the keyboard in the table when the row that had it has gone or is out of sight.
  #refocus() {
    const line = this.#drawn.get(this.#active);
    if (line?.open) line.open.focus({ preventScroll: true });
    else this.view.focus({ preventScroll: true });
  }

  #line() {
    const line = { tr: el("tr"), cells: [], open: null };
    this.#o.columns.forEach((c, i) => {
      const opens = this.#o.open && c.opens;
      const made = c.cell?.() ?? null;
      const td = el(opens ? "th" : "td", { class: classes(c), scope: opens ? "row" : null });
      let target = td;
      if (opens) {
        line.open = target = button("", () => {}, { class: "open", "aria-haspopup": "dialog" });
        td.append(target);
      }
      if (made) target.append(made.node);
      line.cells[i] = { td, target, made };
      line.tr.append(td);
    });
    return line;
  }

  #write(line, row, at, key) {
    put(line.tr, "aria-rowindex", at + 2);
    put(line.tr, "class", this.#o.tone?.(row) ?? null);
    this.#o.columns.forEach((c, i) => {
      const { td, target, made } = line.cells[i];
      if (made) {
        made.update(row, this.#now);
        return;
      }
      const text = c.text(row, this.#now);
      say(target, text);
      if (c.title !== "" && c.wide) put(td, "title", text);
    });
    if (line.open) put(line.open, "tabindex", key === this.#active ? "0" : "-1");
  }

  #click(e) {
    const tr = e.target.closest("tr");
    if (!this.#o.open || !tr || String(getSelection()) !== "") return;
    const row = this.#rowOf(tr);
    if (row) this.#o.open(row);
  }

  #rowOf(tr) {
    return this.#rows.find((r) => String(this.#o.key(r)) === tr.dataset.key);
  }

  #focused(e) {
    const tr = e.target.closest("tr");
    const at = tr ? Number(tr.getAttribute("aria-rowindex")) - 2 : -1;
    if (!this.#o.open || at < 0 || at >= this.#rows.length) return;
    this.#activeAt = at;
    this.#active = this.#o.key(this.#rows[at]);
    for (const [k, line] of this.#drawn) put(line.open, "tabindex", k === this.#active ? "0" : "-1");
  }

  #key(e) {
    if (!this.#o.open || e.ctrlKey || e.metaKey || e.altKey || e.target.closest("thead")) return;
    const page = Math.max(1, Math.floor(this.#height / this.#row) - 2);
    const last = this.#rows.length - 1;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[e.key];
    if (step === undefined || last < 0) return;
    e.preventDefault();
    this.#activeAt = Math.max(0, Math.min(last, this.#activeAt + step));
    this.#active = this.#o.key(this.#rows[this.#activeAt]);
    this.#reveal(this.#activeAt);
    this.#draw();
    this.#drawn.get(this.#active)?.open.focus({ preventScroll: true });
  }

  // reveal scrolls a row into sight.
  #reveal(at) {
    const head = this.heads[0].offsetHeight;
    const top = at * this.#row;
    const bottom = top + this.#row + head;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    else if (bottom > this.view.scrollTop + this.#height) this.view.scrollTop = bottom - this.#height;
  }
}

// found is what the filter finds a row by: its names, not its counts and times.
function found(c, row) {
  const v = c.find ? c.find(row) : c.value(row);
  return typeof v === "string" ? v : "";
}

const classes = (c) => [`c-${c.id}`, c.number ? "number" : "", c.class ?? ""].filter(Boolean).join(" ");

function height(spacer, px) {
  const text = `${px}px`;
  if (spacer.dataset.h === text) return;
  spacer.dataset.h = text;
  spacer.hidden = px <= 0;
  spacer.firstChild.style.height = text;
}

function compare(a, b) {
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  return (a ?? Infinity) - (b ?? Infinity) || 0;
}
