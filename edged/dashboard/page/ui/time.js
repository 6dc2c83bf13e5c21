// A moment as an element: in the viewer's zone, with UTC in its title.

import { el, put, say } from "./dom.js";
import { clock, utc } from "./words.js";

export function moment(ms, text = clock(ms)) {
  const node = el("time");
  remoment(node, ms, text);
  return node;
}

export function remoment(node, ms, text = clock(ms)) {
  put(node, "datetime", new Date(ms).toISOString());
  put(node, "title", `${clock(ms)} here, ${utc(ms)}`);
  say(node, text);
}
