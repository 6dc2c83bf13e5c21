// The picture that the frames of the feed add up to.

const SECONDS = 600;
const MINUTES = 720;

export class Picture {
  head = null; // the newest frame's numbers
  providers = new Map();
  nodes = new Map();
  leases = new Map();
  waiters = new Map();
  members = [];
  seconds = []; // samples, oldest first
  minutes = [];
  #skew = 0; // the edge's clock minus ours
  #sorted = null;

  // now is the time by the edge's clock.
  get now() {
    return Date.now() + this.#skew;
  }

  apply(frame) {
    if (frame.whole) {
      for (const rows of [this.providers, this.nodes, this.leases, this.waiters]) rows.clear();
      this.members = [];
      this.seconds = [];
      this.minutes = [];
    }
    change(this.providers, frame.providers, frame.providers_gone, "id");
    change(this.nodes, frame.nodes, frame.nodes_gone, "id");
    change(this.leases, frame.leases, frame.leases_gone, "id");
    change(this.waiters, frame.waiters, frame.waiters_gone, "request");
    if (frame.whole || frame.waiters || frame.waiters_gone) this.#sorted = null;
    if (frame.members) this.members = frame.members;
    for (const s of frame.pulse ?? []) this.#sample(s);
    this.#skew = frame.at_ms - Date.now();
    const { seq, at_ms, edge, version, role, leader, term, applied_index, lag, revision, actions, queue } = frame;
    this.head = { seq, at_ms, edge, version, role, leader, term, applied_index, lag, revision, actions, queue };
  }

  // line gives the waiters in the order in which they are served; each knows its position, from 1.
  line() {
    if (!this.#sorted) {
      this.#sorted = [...this.waiters.values()].sort((a, b) => a.place - b.place || (a.request < b.request ? -1 : 1));
      this.#sorted.forEach((w, i) => (w.position = i + 1));
    }
    return this.#sorted;
  }

  #sample(s) {
    const [list, kept] = s.step_ms >= 60000 ? [this.minutes, MINUTES] : [this.seconds, SECONDS];
    list.push(s);
    if (list.length > kept) list.splice(0, list.length - kept);
  }
}

function change(rows, list, gone, id) {
  for (const key of gone ?? []) rows.delete(key);
  for (const row of list ?? []) rows.set(row[id], row);
}
