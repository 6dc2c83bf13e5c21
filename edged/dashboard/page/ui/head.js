// The top of the page: which edge this is, how the page is connected to it, and the ways to the views.

import { button, el, put, say, show } from "./dom.js";
import { mark, remark } from "./mark.js";
import { count } from "./words.js";

// Head: views are [{id, title}]; on gives signIn, signOut, again, pause.
export class Head {
  #connection = { name: "connecting" };
  #paused = false;

  constructor(views, on) {
    this.edge = el("h1", {}, "iop");
    this.role = el("span", { class: "fact" });
    this.leader = el("span", { class: "fact" });
    this.revision = el("span", { class: "fact p2" });
    this.version = el("span", { class: "fact p3" });
    this.state = mark("connecting");
    this.state.id = "connection";
    this.again = button("Try now", on.again, { class: "link" });
    this.pause = button("Pause", on.pause, { "aria-pressed": "false", title: "Hold the page still; the edge goes on" });
    this.sign = button("Sign in", () => (this.signedIn ? on.signOut() : on.signIn()));
    this.links = views.map((v) => el("a", { href: `#${v.id}`, data: { view: v.id } }, v.title));
    this.node = el("div", { class: "head" },
      el("div", { class: "who" }, el("img", { src: "/ui/icon.svg", alt: "", width: 22, height: 22 }), this.edge, this.role, this.leader, this.revision, this.version),
      el("div", { class: "connection" }, this.state, this.again, this.pause, this.sign),
      el("nav", { "aria-label": "Views" }, ...this.links));
    show(this.again, false);
  }

  // picture writes what the edge says of itself.
  picture(h) {
    say(this.edge, h.edge);
    document.title = `${h.queue.pending > 0 ? `(${count(h.queue.pending)}) ` : ""}${h.edge} – iop`;
    say(this.role, h.role);
    say(this.leader, h.leader === "" ? "no leader" : h.leader === h.edge ? "leads" : `leader ${h.leader}`);
    put(this.leader, "data-tone", h.leader === "" ? "bad" : null);
    show(this.role, h.role !== "leader" || h.leader !== h.edge);
    say(this.revision, `revision ${count(h.revision)}`);
    say(this.version, h.version);
  }

  connection(state) {
    this.#connection = state;
    this.tick();
  }

  paused(on) {
    this.#paused = on;
    put(this.pause, "aria-pressed", String(on));
    say(this.pause, on ? "Go on" : "Pause");
    this.tick();
  }

  signed(on) {
    this.signedIn = on;
    say(this.sign, on ? "Sign out" : "Sign in");
  }

  // tick keeps the countdown to the next try.
  tick() {
    const c = this.#connection;
    show(this.again, c.name === "waiting");
    if (c.name === "live") remark(this.state, this.#paused ? "paused" : "live");
    else if (c.name === "locked") remark(this.state, "needs token");
    else if (c.name === "waiting") remark(this.state, "reconnecting", `reconnecting in ${Math.max(1, Math.ceil((c.until - Date.now()) / 1000))} s`);
    else remark(this.state, "connecting");
  }

  view(id) {
    for (const a of this.links) put(a, "aria-current", a.dataset.view === id ? "page" : null);
  }
}
