// How numbers and times read. Times are Unix milliseconds, lengths milliseconds.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const two = (n) => String(n).padStart(2, "0");

// count reads as 12,345.
export const count = (n) => whole.format(n);

// brief reads as 12.3K; small numbers as they are.
export const brief = (n) => (Math.abs(n) < 10000 ? whole.format(n) : short.format(n));

// rate reads as 0.3 or 128.
export const rate = (n) => (n < 10 ? tenth.format(n) : whole.format(n));

// span is a length of time, for ages: 0 s, 42 s, 3 m 05 s, 2 h 04 m, 5 d 03 h.
export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} m`;
  return `${Math.floor(s / 86400)} d ${two(Math.floor(s / 3600) % 24)} h`;
}

// took is a length of time, for latencies: 0.4 ms, 87 ms, 1.35 s, 2 m 10 s; a dash for none.
export function took(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 10) return `${Number(ms.toPrecision(2))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${Number((ms / 1000).toPrecision(3))} s`;
  return span(ms);
}

// clock is a time of the day in the viewer's zone, with the day if it is not today's.
export function clock(ms, seconds = true) {
  const d = new Date(ms);
  const time = `${two(d.getHours())}:${two(d.getMinutes())}${seconds ? `:${two(d.getSeconds())}` : ""}`;
  return d.toDateString() === new Date().toDateString() ? time : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${time}`;
}

// utc is the same time for a title.
export const utc = (ms) => `${new Date(ms).toISOString().replace("T", " ").replace(/\.\d+Z$/, "")} UTC`;

// day is a UTC day, some days before now.
export const day = (before = 0) => new Date(Date.now() - before * 86400000).toISOString().slice(0, 10);

// fault is an error in the edge's words, and what to do about it.
export const fault = (e) => `${e.message}. ${e.cure ?? ""}`;

// many reads as "1 node", "2 nodes".
export const many = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
