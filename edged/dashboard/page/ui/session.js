// Who the viewer is: the token that was typed, kept for this tab only, and calls that show it.

const KEY = "iop.token";

// Refusal is an answer that is no success, in the edge's words.
export class Refusal extends Error {
  constructor(status, { code = "failed", message = `the edge answered ${status}`, cure = "see the edge's log" } = {}) {
    super(message);
    Object.assign(this, { status, code, cure });
  }
}

// Unreachable says that nobody answered.
class Unreachable extends Error {
  constructor() {
    super("the edge does not answer");
    this.code = "unreachable";
    this.cure = "is it running, and can this machine reach it? The page goes on by itself when it answers";
  }
}

export class Session {
  #token = sessionStorage.getItem(KEY) ?? "";

  get signedIn() {
    return this.#token !== "";
  }

  signIn(token) {
    this.#token = token;
    sessionStorage.setItem(KEY, token);
  }

  signOut() {
    this.#token = "";
    sessionStorage.removeItem(KEY);
  }

  // open makes a call and gives the answer, whose body is still to be read. It throws Refusal or Unreachable.
  async open(path, options = {}) {
    const headers = { ...options.headers };
    if (this.#token) headers.Authorization = `Bearer ${this.#token}`;
    let answer;
    try {
      answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
    } catch (e) {
      throw e.name === "AbortError" ? e : new Unreachable();
    }
    if (answer.ok) return answer;
    const body = await answer.json().catch(() => null);
    throw new Refusal(answer.status, body?.error ?? undefined);
  }

  // get reads JSON.
  async get(path, signal) {
    return (await this.open(path, { signal })).json();
  }

  // post changes something.
  async post(path, body) {
    const options = { method: "POST" };
    if (body !== undefined) {
      options.body = JSON.stringify(body);
      options.headers = { "Content-Type": "application/json" };
    }
    return (await this.open(path, options)).json();
  }
}
