// What the scripts are told of the gateway, and what they share. e2e/clients_test.go starts it and sets the variables:
// BASE_URL (with /v1), API_KEY, the model keys QUICK, SLOW (a word every 20 ms, for long) and EMBED; BUSY_URL is another
// gateway whose model QUICK has one slot, one place in its queue, and 1.2 s to wait there.
import { test } from 'node:test';
import assert from 'node:assert/strict';

const need = (name) => process.env[name] ?? (() => { throw new Error(`${name} is not set; see world.mjs`); })();
export const baseURL = need('BASE_URL');
export const rootURL = baseURL.replace(/\/v1$/, '');
export const busyURL = need('BUSY_URL');
export const apiKey = need('API_KEY');
export const quick = need('QUICK');
export const slow = need('SLOW');
export const embed = need('EMBED');

// check is one test; none may take longer than its bound.
export const check = (name, run, timeout = 30_000) => test(name, { timeout }, run);
export { assert };

export const weather = {
  type: 'object', properties: { city: { type: 'string', enum: ['Lisbon', 'Oslo'] } }, required: ['city'], additionalProperties: false,
};
export const verdict = {
  type: 'object', properties: { good: { type: 'boolean' }, grade: { type: 'integer', minimum: 3 } }, required: ['good', 'grade'], additionalProperties: false,
};
export const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const picture = `data:image/png;base64,${dot}`;
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export async function post(url, body, headers = {}) {
  return fetch(`${url}/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}`, ...headers }, body: JSON.stringify(body),
  });
}

// occupy takes the busy gateway's only slot for about two seconds, and with waiting its only place in the queue too. It
// resolves when both are taken; release gives them back at once.
export async function occupy({ waiting }) {
  const leave = new AbortController();
  const ask = (stream) => fetch(`${busyURL}/chat/completions`, {
    method: 'POST', signal: leave.signal, headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: quick, stream, messages: [{ role: 'user', content: 'hold' }] }),
  });
  const holder = await ask(true);
  assert.equal(holder.status, 200, 'the busy gateway has a free slot');
  const drained = holder.text().catch(() => {});
  let waiter = Promise.resolve();
  if (waiting) {
    waiter = ask(false).then((r) => r.text()).catch(() => {});
    await sleep(150);
  }
  return { async release() { leave.abort(); await Promise.all([drained, waiter]); } };
}
