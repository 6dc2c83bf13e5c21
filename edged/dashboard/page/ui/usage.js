// The view of usage: what was used, by principal or something else, in some days.

import { button, el, put, widen } from "./dom.js";
import { section } from "./section.js";
import { Table } from "./table.js";
import { brief, count, day, fault } from "./words.js";

const keys = ["principal", "token", "model", "provider", "day"];
const spans = [["Today", 0, 0], ["Yesterday", 1, 1], ["7 days", 6, 0], ["30 days", 29, 0], ["All", null, null]];

export class Usage {
  title = "Usage";
  #session;
  #asked = 0;
  #rows = [];

  constructor({ session }) {
    this.#session = session;
    this.by = el("select", { id: "usage-by" }, ...keys.map((k) => el("option", { value: k }, k)));
    this.from = el("input", { type: "date", id: "usage-from" });
    this.to = el("input", { type: "date", id: "usage-to" });
    this.spans = spans.map(([title, from, to]) => button(title, () => this.#pick(from, to), { "aria-pressed": "false" }));
    for (const input of [this.by, this.from, this.to]) input.addEventListener("change", () => this.#ask());
    this.trouble = el("p", { class: "trouble", role: "alert", hidden: true });
    this.sum = el("p", { class: "dim" });
    this.table = this.#table("principal");
    this.place = el("div", {}, this.table.node);
    this.head = el("div", { class: "tools" }, this.table.tools);
    const choice = el("div", { class: "fields" }, el("span", { class: "field" }, el("label", { for: "usage-by" }, "By"), this.by),
      el("span", { class: "group", role: "group", "aria-label": "Days" }, ...this.spans),
      el("span", { class: "field" }, el("label", { for: "usage-from" }, "From"), this.from), el("span", { class: "field" }, el("label", { for: "usage-to" }, "To"), this.to), el("span", { class: "dim" }, "days in UTC"));
    this.node = el("div", { class: "stack" }, section("usage", "Usage", this.head, choice, this.trouble, this.sum, this.place));
    this.#set(6, 0);
  }

  // update is called at each change of the picture: usage is asked for when the view is opened, and every ten seconds.
  update() {
    if (Date.now() - this.#asked > 10000) this.#ask();
  }

  forget() {
    this.#asked = 0;
  }

  #set(from, to) {
    this.from.value = from === null ? "" : day(from);
    this.to.value = to === null ? "" : day(to);
  }

  #pick(from, to) {
    this.#set(from, to);
    this.#ask();
  }

  async #ask() {
    this.#asked = Date.now();
    const query = new URLSearchParams({ by: this.by.value });
    if (this.from.value) query.set("from", this.from.value);
    if (this.to.value) query.set("to", this.to.value);
    this.spans.forEach((b, i) => {
      const [, from, to] = spans[i];
      put(b, "aria-pressed", String(this.from.value === (from === null ? "" : day(from)) && this.to.value === (to === null ? "" : day(to))));
    });
    try {
      const report = await this.#session.get(`/usage?${query}`);
      this.#draw(report);
      this.trouble.hidden = true;
    } catch (e) {
      this.trouble.textContent = fault(e);
      this.trouble.hidden = false;
    }
  }

  #draw(report) {
    const by = report.by[0];
    if (by !== this.shown) {
      this.shown = by;
      this.table = this.#table(by);
      this.place.replaceChildren(this.table.node);
      this.head.replaceChildren(this.table.tools);
    }
    this.#rows = report.rows.map((r) => ({ ...r, tokens: r.prompt_tokens + r.completion_tokens }));
    const all = (get) => this.#rows.reduce((n, r) => n + get(r), 0);
    this.most = Math.max(1, ...this.#rows.map((r) => r.tokens));
    this.sum.textContent = this.#rows.length === 0 ? "" : `${count(all((r) => r.requests))} requests, ${count(all((r) => r.prompt_tokens))} tokens in, ${count(all((r) => r.completion_tokens))} tokens out. ${untold(all((r) => r.untold))}`;
    this.table.update(this.#rows, 0);
  }

  #table(by) {
    const number = (id, title, get, cls) => ({ id, title, value: get, text: (r) => count(get(r)), number: true, class: cls });
    return new Table({
      label: "Usage", sort: by === "day" ? "-name" : "-tokens", key: (r) => r[by] ?? "",
      empty: el("p", {}, "Nothing ran in these days. What runs is counted when it ends."),
      columns: [
        { id: "name", title: by === "day" ? "Day" : by[0].toUpperCase() + by.slice(1), value: (r) => r[by] ?? "", text: (r) => r[by] || (by === "principal" ? "(nobody in particular)" : "(none)"), wide: true },
        { id: "tokens", title: "Tokens", value: (r) => r.tokens, cell: () => this.#share() },
        number("requests", "Requests", (r) => r.requests),
        number("prompt", "In", (r) => r.prompt_tokens, "p2"), number("completion", "Out", (r) => r.completion_tokens, "p2"),
        number("cached", "Cached", (r) => r.cached_tokens, "p3"), number("reasoning", "Reasoning", (r) => r.reasoning_tokens, "p4"),
        number("aborted", "Aborted", (r) => r.aborted, "p4"), number("untold", "Untold", (r) => r.untold, "p5"),
      ],
    });
  }

  // share is a cell: how much of the most that any has.
  #share() {
    const fill = el("i");
    const text = el("span");
    const node = el("span", { class: "share" }, el("span", { class: "meter", "aria-hidden": "true" }, fill), text);
    return {
      node,
      update: (r) => {
        widen(fill, r.tokens / this.most);
        text.textContent = brief(r.tokens);
      },
    };
  }
}

const untold = (n) => (n > 0 ? `Of ${count(n)} requests nobody reported the tokens.` : "");
