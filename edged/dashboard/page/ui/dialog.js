// Dialogs: a sheet with what is known of a row, and the question before an action. The browser keeps the focus inside and
// gives it back.

import { button, el } from "./dom.js";
import { rehouse } from "./notice.js";

let made = 0;

// sheet opens a dialog and returns {body, foot, closed, close}: closed is a promise.
export function sheet(title, { small = false } = {}) {
  const id = `dialog-${++made}`;
  const body = el("div", { class: "sheet-body" });
  const foot = el("div", { class: "sheet-foot" });
  const close = () => node.close();
  const node = el("dialog", { class: small ? "sheet small" : "sheet", "aria-labelledby": id },
    el("div", { class: "sheet-head" }, el("h2", { id }, title), button("✕", close, { class: "icon", "aria-label": "Close" })), body, foot);
  node.addEventListener("click", (e) => {
    if (e.target === node) close(); // beside the sheet
  });
  const closed = new Promise((resolve) => node.addEventListener("close", () => {
    rehouse(node);
    node.remove();
    resolve();
  }));
  document.body.append(node);
  node.showModal();
  return { node, body, foot, close, closed };
}

// follow opens a sheet of something that changes: read() gives it as it is (undefined: it is gone), show(it) the nodes that tell of
// it, buttons(it) what can be done. These are only made anew when it begins or ends to drain, so that none goes while it is pressed.
// changed(fn) calls fn at each change and returns what ends that.
export function follow(title, changed, { read, show, buttons }) {
  const s = sheet(title);
  let drawn = "";
  let draining = null;
  const draw = () => {
    const it = read();
    const text = JSON.stringify(it ?? null);
    if (text === drawn) return;
    drawn = text;
    if (!it) {
      s.body.replaceChildren(el("p", {}, "It is no longer there."));
      s.foot.replaceChildren();
      draining = null;
      return;
    }
    s.body.replaceChildren(...show(it));
    if (draining !== it.draining) s.foot.replaceChildren(...buttons(it));
    draining = it.draining;
  };
  s.closed.then(changed(draw));
  draw();
}

// confirm asks before an action; it resolves to whether it may be done.
export async function confirm(title, text, verb) {
  const s = sheet(title, { small: true });
  let yes = false;
  s.body.append(el("p", {}, text));
  s.foot.append(button("Leave it", s.close), button(verb, () => {
    yes = true;
    s.close();
  }, { class: "primary" }));
  s.foot.firstChild.focus();
  await s.closed;
  return yes;
}

// askToken asks for the admin token; it resolves to it, or to "" if there is none to be had.
export async function askToken(refusal) {
  const s = sheet("Sign in", { small: true });
  let token = "";
  const input = el("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "token-note" });
  const form = el("form", { id: "sign-in" },
    refusal ? el("p", { class: "trouble", role: "alert" }, refusal) : null,
    el("label", { for: "token" }, "Admin or view token of this edge"), input,
    el("p", { class: "dim", id: "token-note" }, "edge.admin.token or edge.admin.view_token of its file. It stays in this tab until you sign out or close it."));
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    token = input.value.trim();
    if (token) s.close();
  });
  s.body.append(form);
  s.foot.append(button("Not now", s.close), el("button", { type: "submit", form: "sign-in", class: "primary" }, "Sign in"));
  input.focus();
  await s.closed;
  return token;
}
