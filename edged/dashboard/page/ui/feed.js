// The live feed (GET /live), read with fetch so that the token goes in a header. It begins anew with a whole picture when a
// frame was missed, and comes back by itself, in longer and longer pauses, when the edge went away.

import { Refusal } from "./session.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10000;
const SILENCE = 45000; // the edge says something more often than that

export class Feed {
  #session;
  #frame;
  #state;
  #abort = null;
  #wake = null;
  #runs = 0; // the newest run; an older one ends
  #failures = 0;
  #seq = 0;

  // frame(frame) gets each one in order; state({name, until, error}) each change: connecting, live, waiting (for the next try, at
  // the time until), locked (the edge wants another token).
  constructor(session, { frame, state }) {
    this.#session = session;
    this.#frame = frame;
    this.#state = state;
  }

  // run reads until stop is called or the edge wants another token.
  async run() {
    const run = ++this.#runs;
    while (run === this.#runs) {
      this.#state({ name: "connecting" });
      let error = null;
      try {
        await this.#connect();
      } catch (e) {
        error = e;
      }
      if (run !== this.#runs) return;
      if (error instanceof Refusal && error.status === 401) {
        this.#state({ name: "locked", error });
        return;
      }
      await this.#pause(error);
    }
  }

  stop() {
    this.#runs++;
    this.#abort?.abort();
    this.#wake?.();
  }

  // now ends a pause.
  now() {
    this.#failures = 0;
    this.#wake?.();
  }

  async #connect() {
    this.#abort = new AbortController();
    this.#seq = 0;
    let silence = 0;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => this.#abort.abort(), SILENCE);
    };
    heard();
    try {
      const answer = await this.#session.open("/live?every=1000", { signal: this.#abort.signal, headers: { Accept: "text/event-stream" } });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser((event) => this.#take(event));
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        heard();
        parser.push(value);
      }
    } finally {
      clearTimeout(silence);
      this.#abort.abort();
    }
  }

  #take({ event, data }) {
    if (event !== "whole" && event !== "change") return;
    const frame = JSON.parse(data);
    frame.whole = event === "whole";
    if (!frame.whole && frame.seq !== this.#seq + 1) {
      this.#abort.abort(); // something is missing: begin anew
      return;
    }
    this.#seq = frame.seq;
    this.#failures = 0;
    this.#state({ name: "live" });
    this.#frame(frame);
  }

  async #pause(error) {
    const longest = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#failures);
    this.#failures++;
    const pause = longest * (0.5 + Math.random() / 2); // so that not all pages of an edge come back at once
    this.#state({ name: "waiting", until: Date.now() + pause, error });
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, pause);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = null;
  }
}

// Parser reads server-sent events out of pieces of text.
class Parser {
  #take;
  #pieces = []; // of the line that is not over yet
  #event = "";
  #data = [];

  constructor(take) {
    this.#take = take;
  }

  push(text) {
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#pieces.push(text.slice(from, end));
      const line = this.#pieces.length === 1 ? this.#pieces[0] : this.#pieces.join("");
      this.#pieces = [];
      this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
      from = end + 1;
    }
    if (from < text.length) this.#pieces.push(text.slice(from));
  }

  #line(line) {
    if (line === "") {
      if (this.#data.length > 0) this.#take({ event: this.#event, data: this.#data.join("\n") });
      this.#event = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "event") this.#event = value;
    if (name === "data") this.#data.push(value);
  }
}
