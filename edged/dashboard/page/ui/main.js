// The page: the feed into the picture, the picture into the view that is open.

import { Actions, readOnly } from "./actions.js";
import { Cluster } from "./cluster.js";
import { askToken } from "./dialog.js";
import { button, el, show } from "./dom.js";
import { Feed } from "./feed.js";
import { Head } from "./head.js";
import { Live } from "./live.js";
import { notice } from "./notice.js";
import { Picture } from "./picture.js";
import { Revisions } from "./revision.js";
import { Session } from "./session.js";
import { Usage } from "./usage.js";
import { fault } from "./words.js";

const session = new Session();
const picture = new Picture();
const watchers = new Set();
const context = {
  session,
  picture,
  actions: new Actions(session, () => picture.head?.actions ?? "read_only"),
  // changed has a function called at each change; it returns what ends that.
  changed(fn) {
    watchers.add(fn);
    return () => watchers.delete(fn);
  },
};

const views = { live: new Live(context), cluster: new Cluster(context), config: new Revisions(context), usage: new Usage(context) };
const head = new Head(Object.entries(views).map(([id, v]) => ({ id, title: v.title })), {
  signIn: () => signIn(),
  signOut: () => signOut(),
  again: () => feed.now(),
  pause: () => pause(!paused),
});
const stale = el("p", { class: "note stale", role: "status" });
const start = el("p", { class: "note" }, "Asking the edge …");
const foot = el("p", { class: "dim" });
document.getElementById("head").append(head.node);
document.getElementById("foot").append(foot);
const main = document.getElementById("main");
main.append(stale, start, ...Object.values(views).map((v) => v.node));

let paused = false;
let asked = 0;
let version = null;
let open = "live";
let asking = false;

const feed = new Feed(session, {
  frame(frame) {
    picture.apply(frame);
    if (version !== null && version !== frame.version) upgraded(frame.version);
    version = frame.version;
    draw();
  },
  state(state) {
    head.connection(state);
    if (state.name === "locked") signIn(session.signedIn ? state.error.message : "");
    const lost = state.name === "waiting" && picture.head !== null;
    show(stale, lost);
    if (lost && stale.textContent === "") stale.textContent = "The edge does not answer. What is shown is what it said last; the page goes on by itself when it is back.";
    if (!lost) stale.textContent = "";
    if (picture.head === null) start.textContent = sentence(state);
  },
});

function sentence(state) {
  if (state.name === "locked") return "This edge wants a token: sign in to see it.";
  if (state.name === "waiting") return fault(state.error ?? { message: "The feed ended" });
  return "Asking the edge …";
}

// draw brings the page up to date, once per frame of the screen.
function draw() {
  if (asked || picture.head === null) return;
  asked = requestAnimationFrame(() => {
    asked = 0;
    head.picture(picture.head);
    for (const fn of watchers) fn();
    if (paused) return;
    show(start, false);
    for (const [id, v] of Object.entries(views)) show(v.node, id === open);
    views[open].update(picture);
    foot.textContent = readOnly[picture.head.actions] ?? "";
  });
}

function route() {
  const id = location.hash.slice(1);
  const next = id in views ? id : "live";
  if (id !== "" && !(id in views)) return; // a place within the view
  if (next !== open) views[next].forget?.();
  open = next;
  head.view(open);
  draw();
}

function pause(on) {
  paused = on;
  head.paused(on);
  draw();
}

async function signIn(refusal = "") {
  if (asking) return;
  asking = true;
  const token = await askToken(refusal);
  asking = false;
  if (!token) return;
  feed.stop();
  session.signIn(token);
  head.signed(true);
  feed.run();
}

// signOut forgets the token, and everything that was seen with it.
function signOut() {
  session.signOut();
  location.reload();
}

function upgraded(to) {
  notice(`The edge runs version ${to} now.`, { action: button("Load its page", () => location.reload()) });
}

for (const v of Object.values(views)) show(v.node, false);
show(stale, false);
head.signed(session.signedIn);
addEventListener("hashchange", route);
setInterval(() => {
  head.tick();
  draw();
}, 1000);
route();
feed.run();
