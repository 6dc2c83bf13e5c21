// The charts of the pulse, and the choice of how far they look back.

import { Chart } from "./chart.js";
import { el } from "./dom.js";
import { brief, rate, took } from "./words.js";

const ranges = [
  { id: "2m", title: "2 min", ms: 120000 },
  { id: "10m", title: "10 min", ms: 600000 },
  { id: "12h", title: "12 h", ms: 43200000, minutes: true },
];

const quantiles = (of) => [
  { name: "p50", get: (s) => s[of]?.p50, dash: "solid", tone: "accent" },
  { name: "p90", get: (s) => s[of]?.p90, dash: "dashed", tone: "accent" },
  { name: "p99", get: (s) => s[of]?.p99, dash: "dotted", tone: "ink" },
];

const perSecond = (s, n) => (n * 1000) / s.step_ms;

export class Charts {
  #range = ranges[1];
  #picture = null;

  constructor() {
    this.charts = [
      new Chart({ title: "Wait", format: took, lines: quantiles("wait_ms") }),
      new Chart({ title: "First byte", format: took, lines: quantiles("first_byte_ms") }),
      new Chart({ title: "Duration", format: took, lines: quantiles("duration_ms") }),
      new Chart({ title: "Requests per second", format: rate, lines: [
        { name: "ended", get: (s) => perSecond(s, s.requests), dash: "solid", tone: "accent", area: true },
        { name: "errors", get: (s) => perSecond(s, s.errors), dash: "dashed", tone: "bad" },
      ] }),
      new Chart({ title: "Waiting and running", format: brief, lines: [
        { name: "running", get: (s) => s.in_flight, dash: "solid", tone: "accent", area: true, step: true },
        { name: "waiting", get: (s) => s.pending, dash: "dashed", tone: "warn", step: true },
        { name: "slots", get: (s) => s.capacity, dash: "dotted", tone: "ink", step: true },
      ] }),
    ];
    this.choice = el("fieldset", { class: "choice" }, el("legend", { class: "unseen" }, "How far the charts look back"), ...ranges.map((r) => this.#radio(r)));
    this.node = el("div", { class: "charts" }, ...this.charts.map((c) => c.node));
  }

  update(picture) {
    this.#picture = picture;
    const r = this.#range;
    const to = picture.now;
    const from = to - r.ms;
    const samples = (r.minutes ? picture.minutes : picture.seconds).filter((s) => s.at_ms > from);
    for (const c of this.charts) c.update(samples, from, to);
  }

  #radio(r) {
    const input = el("input", { type: "radio", name: "range", value: r.id, checked: r === this.#range });
    input.addEventListener("change", () => {
      this.#range = r;
      if (this.#picture) this.update(this.#picture);
    });
    return el("label", {}, input, el("span", {}, r.title));
  }
}
