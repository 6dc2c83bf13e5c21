// A moment as an element: in the viewer's zone, with UTC in its title.

import { el } from "./dom.js";
import { clock, utc } from "./words.js";

export function moment(ms) {
  return el("time", { datetime: new Date(ms).toISOString(), title: `${clock(ms)} here, ${utc(ms)}` }, clock(ms));
}
