// A chart over time, drawn as SVG: lines that are told apart by their dashes too, with the numbers in the legend, the value
// under the pointer, and the same as a table.

import { el, put, say, svg } from "./dom.js";
import { moment } from "./time.js";
import { clock } from "./words.js";

const HEIGHT = 96;
const ROWS = 12; // of the table

// Options: title, unit (text for the table's head), format(value), lines: [{name, get(sample), dash: solid|dashed|dotted, area, step, tone}].
export class Chart {
  #o;
  #samples = [];
  #from = 0;
  #to = 1;
  #top = 1;
  #width = 300;
  #pointer = null;

  constructor(options) {
    this.#o = options;
    this.plot = svg("svg", { role: "img", class: "plot", preserveAspectRatio: "none" });
    this.rules = [0, 0.5].map((at) => svg("line", { class: "rule", x1: 0, x2: "100%", y1: at * HEIGHT + 0.5, y2: at * HEIGHT + 0.5 }));
    this.base = svg("line", { class: "base", x1: 0, x2: "100%", y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 });
    this.cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
    this.lines = options.lines.map((l) => ({
      ...l,
      area: l.area ? svg("path", { class: "area", "data-tone": l.tone }) : null,
      path: svg("path", { class: "line", "data-dash": l.dash, "data-tone": l.tone }),
      value: el("b"),
    }));
    this.plot.append(...this.rules, this.base, ...this.lines.flatMap((l) => [l.area, l.path]).filter(Boolean), this.cursor);
    this.high = el("span", { class: "tick high" });
    this.half = el("span", { class: "tick half" });
    this.left = el("span");
    this.right = el("span");
    this.at = el("span", { class: "at" });
    this.details = el("details", { class: "numbers" }, el("summary", {}, "As a table"));
    this.details.addEventListener("toggle", () => this.#list());
    this.frame = el("div", { class: "frame" }, this.plot, this.high, this.half);
    this.node = el("figure", { class: "chart" },
      el("figcaption", {}, el("h3", {}, options.title), this.at,
        el("ul", { class: "legend", "aria-label": `${options.title}: legend` }, ...this.lines.map((l) => el("li", {}, key(l), `${l.name} `, l.value)))),
      this.frame, el("div", { class: "axis", "aria-hidden": "true" }, this.left, this.right), this.details);
    this.frame.addEventListener("pointermove", (e) => this.#point(e.offsetX));
    this.frame.addEventListener("pointerleave", () => this.#point(null));
    new ResizeObserver(() => this.#resize()).observe(this.frame);
  }

  // update draws samples (oldest first) of the time from..to.
  update(samples, from, to) {
    this.#samples = samples;
    this.#from = from;
    this.#to = to;
    this.#draw();
    if (this.details.open) this.#list();
  }

  #resize() {
    const width = this.frame.clientWidth;
    if (width === 0 || width === this.#width) return;
    this.#width = width;
    this.#draw();
  }

  #draw() {
    put(this.plot, "viewBox", `0 0 ${this.#width} ${HEIGHT}`);
    let most = 0;
    for (const s of this.#samples) for (const l of this.lines) most = Math.max(most, l.get(s) ?? 0);
    this.#top = round(most);
    say(this.high, this.#o.format(this.#top));
    say(this.half, this.#o.format(this.#top / 2));
    say(this.left, clock(this.#from, false));
    say(this.right, clock(this.#to, true));
    for (const l of this.lines) {
      const points = this.#samples.map((s) => [this.#x(s.at_ms), l.get(s)]);
      put(l.path, "d", trace(points, (v) => this.#y(v), l.step));
      if (l.area) put(l.area, "d", fill(points, (v) => this.#y(v)));
    }
    this.#numbers();
    put(this.plot, "aria-label", `${this.#o.title}, from ${clock(this.#from, false)} to ${clock(this.#to, false)}. ${this.lines.map((l) => `${l.name} ${l.value.textContent}`).join(", ")}. Highest: ${this.#o.format(most)}.`);
  }

  #x(ms) {
    return ((ms - this.#from) / (this.#to - this.#from)) * this.#width;
  }

  #y(v) {
    return HEIGHT - 1 - (Math.min(v, this.#top) / this.#top) * (HEIGHT - 4);
  }

  #point(x) {
    this.#pointer = x;
    this.#numbers();
  }

  // numbers writes the values under the pointer, or the newest ones.
  #numbers() {
    const s = this.#pointer === null ? null : this.#near(this.#pointer);
    for (const l of this.lines) {
      let v = s ? l.get(s) : null;
      if (!s) for (let i = this.#samples.length - 1; i >= 0 && i >= this.#samples.length - 30 && (v === null || v === undefined); i--) v = l.get(this.#samples[i]);
      say(l.value, v === null || v === undefined ? "–" : this.#o.format(v));
    }
    say(this.at, s ? clock(s.at_ms) : "");
    put(this.cursor, "visibility", s ? "visible" : "hidden");
    if (!s) return;
    put(this.cursor, "x1", this.#x(s.at_ms).toFixed(1));
    put(this.cursor, "x2", this.#x(s.at_ms).toFixed(1));
  }

  #near(x) {
    let best = null;
    let least = Infinity;
    for (const s of this.#samples) {
      const d = Math.abs(this.#x(s.at_ms) - x);
      if (d < least) [best, least] = [s, d];
    }
    return best;
  }

  // list makes the table: some moments, evenly apart.
  #list() {
    if (!this.details.open) return;
    const step = Math.max(1, Math.floor(this.#samples.length / ROWS));
    const rows = this.#samples.filter((_, i) => (this.#samples.length - 1 - i) % step === 0).reverse();
    const table = el("table", { "aria-label": this.#o.title },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Time"), ...this.lines.map((l) => el("th", { scope: "col", class: "number" }, l.name)))),
      el("tbody", {}, ...rows.map((s) => el("tr", {}, el("td", {}, moment(s.at_ms)), ...this.lines.map((l) => {
        const v = l.get(s);
        return el("td", { class: "number" }, v === null || v === undefined ? "–" : this.#o.format(v));
      })))));
    if (this.table) this.table.replaceWith(table);
    else this.details.append(table);
    this.table = table;
  }
}

function key(l) {
  return svg("svg", { class: "key", viewBox: "0 0 18 8", width: 18, height: 8, "aria-hidden": "true" }, svg("path", { class: "line", d: "M1 4H17", "data-dash": l.dash, "data-tone": l.tone }));
}

// trace is the path of the points that have a value; single ones are dots. A gap of a few is bridged.
function trace(points, y, step) {
  let d = "";
  let missing = Infinity;
  let last = null;
  for (const [x, v] of points) {
    if (v === null || v === undefined) {
      missing++;
      continue;
    }
    const at = y(v).toFixed(1);
    if (missing > 5) d += `M${x.toFixed(1)} ${at}h0`;
    else if (step && last !== at) d += `H${x.toFixed(1)}V${at}`;
    else d += `L${x.toFixed(1)} ${at}`;
    missing = 0;
    last = at;
  }
  return d;
}

function fill(points, y) {
  const seen = points.filter(([, v]) => v !== null && v !== undefined);
  if (seen.length < 2) return "";
  return `M${seen[0][0].toFixed(1)} ${HEIGHT}${seen.map(([x, v]) => `L${x.toFixed(1)} ${y(v).toFixed(1)}`).join("")}L${seen.at(-1)[0].toFixed(1)} ${HEIGHT}Z`;
}

// round gives the end of an axis: 1, 2 or 5 times a power of ten.
function round(v) {
  if (!(v > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(v));
  for (const m of [1, 2, 5, 10]) if (m * power >= v) return m * power;
  return v;
}
