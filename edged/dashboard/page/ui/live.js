// The view of what is now: numbers, charts, providers, queue, leases.

import { attentionList } from "./attention.js";
import { Charts } from "./charts.js";
import { el } from "./dom.js";
import { leaseTable } from "./lease.js";
import { openProvider, providerTable } from "./provider.js";
import { queueTable } from "./queue.js";
import { openRequest } from "./request.js";
import { section } from "./section.js";
import { tiles } from "./tiles.js";

// Live is a view: node, and update(picture) at each change while it is seen.
export class Live {
  title = "Live";

  constructor(context) {
    this.tiles = tiles();
    this.attention = attentionList();
    this.charts = new Charts();
    this.providers = providerTable((p) => openProvider(p.id, context));
    this.queue = queueTable((w) => openRequest(w.request, context));
    this.leases = leaseTable((l) => openRequest(l.request, context));
    const charts = section("charts", "Over time", this.charts.choice, this.charts.node);
    const tables = el("div", { class: "tables" },
      section("providers", "Providers", this.providers.tools, this.providers.node),
      section("queue", "Queue", this.queue.tools, this.queue.node),
      section("leases", "Leases", this.leases.tools, this.leases.node));
    this.node = el("div", { class: "live" }, this.tiles.node, this.attention.node);
    // On a phone the tables come first: the charts are long there. What is seen and what Tab reaches have one order.
    const narrow = matchMedia("(max-width: 48rem)");
    const place = () => this.node.append(...(narrow.matches ? [tables, charts] : [charts, tables]));
    narrow.addEventListener("change", place);
    place();
  }

  update(picture) {
    this.tiles.update(picture);
    this.attention.update(picture);
    this.charts.update(picture);
    this.providers.update([...picture.providers.values()], picture.now);
    this.queue.update(picture.line(), picture.now);
    this.leases.update([...picture.leases.values()], picture.now);
  }
}
