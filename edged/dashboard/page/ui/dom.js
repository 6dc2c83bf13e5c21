// Elements out of data: text becomes text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

// el makes an element. props: "class", "text", "on" ({event: handler}), "data" ({name: value}), else attributes; true
// is an attribute without a value, false, null and undefined are none. Children are nodes or strings.
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

// svg makes an element of SVG.
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "class") node.setAttribute("class", value);
    else if (name === "text") node.textContent = value;
    else if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (name === "data") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

// say sets a node's text, if it is another one.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// put sets an attribute, if it is another one; null takes it away.
export function put(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

// show has a node seen or not.
export function show(node, seen) {
  if (node.hidden === seen) node.hidden = !seen;
}

// widen makes a bar as wide as a share, from 0 to 1, of what it lies in.
export function widen(node, share) {
  const text = `${Math.round(Math.min(1, Math.max(0, share)) * 1000) / 10}%`;
  if (node.dataset.w === text) return;
  node.dataset.w = text;
  node.style.width = text;
}

// button makes one that is no form's.
export function button(text, press, props = {}) {
  return el("button", { type: "button", ...props, on: { click: press } }, text);
}
