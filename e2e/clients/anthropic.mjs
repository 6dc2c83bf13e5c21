// The Anthropic SDK, by /v1/messages: built on chat here, since the demo provider has no such route of its own.
import Anthropic from '@anthropic-ai/sdk';
import { apiKey, assert, busyURL, check, dot, occupy, quick, rootURL, slow, weather } from './world.mjs';

const client = (more = {}) => new Anthropic({ baseURL: rootURL, apiKey, maxRetries: 0, ...more });
const c = client();
const says = (content) => [{ role: 'user', content }];
const base = { model: quick, max_tokens: 500 };
const tools = [{ name: 'get_weather', description: 'The weather', input_schema: weather }];

check('messages', async () => {
  const { data, response } = await c.messages.create({ ...base, system: 'be short', messages: says('hi') }).withResponse();
  assert.ok(data.type === 'message' && data.model === quick && data.content[0].text && data.stop_reason === 'end_turn');
  assert.ok(data.usage.input_tokens > 0 && data.usage.output_tokens > 0);
  assert.equal(data._request_id, response.headers.get('request-id'));
  assert.equal((await c.messages.create({ ...base, max_tokens: 3, messages: says('hi') })).stop_reason, 'max_tokens');
});

check('stream', async () => {
  const types = [];
  let text = '';
  for await (const e of await c.messages.create({ ...base, messages: says('hi'), stream: true })) {
    types.push(e.type);
    if (e.type === 'content_block_delta') text += e.delta.text;
  }
  assert.ok(types[0] === 'message_start' && types.at(-1) === 'message_stop' && text.length > 10 && types.length > 8);
  const whole = await c.messages.stream({ ...base, messages: says('hi') }).finalMessage();
  assert.ok(whole.content[0].text === text && whole.stop_reason === 'end_turn' && whole.usage.output_tokens > 0);
});

check('abort, timeout', async () => {
  let n = 0;
  const s = c.messages.stream({ ...base, model: slow, messages: says('count') });
  await assert.rejects(async () => { for await (const e of s) if (e.type === 'content_block_delta' && ++n === 5) s.abort(); s.errored && (() => { throw s.errored; })(); await s.done(); }, Anthropic.APIUserAbortError);
  assert.ok(n >= 5 && n < 60);
  await assert.rejects(c.messages.create({ ...base, model: slow, messages: says('count') }, { timeout: 200 }), Anthropic.APIConnectionTimeoutError);
});

check('tools, whole and streamed', async () => {
  const asked = says('weather please');
  const r = await c.messages.create({ ...base, tools, messages: asked });
  const call = r.content.find((b) => b.type === 'tool_use');
  assert.ok(r.stop_reason === 'tool_use' && call.input.city === 'Lisbon');
  const told = await c.messages.create({ ...base, tools, messages: [...asked, { role: 'assistant', content: r.content }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: '21 degrees' }] }] });
  assert.ok(told.content[0].text);
  const streamed = await c.messages.stream({ ...base, tools, messages: asked }).finalMessage();
  assert.equal(streamed.content.find((b) => b.type === 'tool_use').input.city, 'Lisbon');
});

check('thinking, images, structured output', async () => {
  const r = await c.messages.create({ ...base, max_tokens: 3000, thinking: { type: 'enabled', budget_tokens: 1024 }, messages: says([{ type: 'text', text: 'what is it?' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: dot } }]) });
  assert.ok(r.content[0].type === 'thinking' && r.content[1].type === 'text');
  const s = await c.messages.stream({ ...base, max_tokens: 3000, thinking: { type: 'enabled', budget_tokens: 1024 }, messages: says('hi') }).finalMessage();
  assert.ok(s.content[0].thinking && s.content[1].text);
  const o = await c.messages.create({ ...base, messages: says('grade it'), output_config: { format: { type: 'json_schema', schema: { type: 'object', properties: { good: { type: 'boolean' } }, required: ['good'] } } } });
  assert.equal(typeof JSON.parse(o.content[0].text).good, 'boolean');
});

check('count_tokens', async () => {
  const few = await c.messages.countTokens({ model: quick, messages: says('hello there') });
  const many = await c.messages.countTokens({ model: quick, messages: says('hello there '.repeat(500)) });
  assert.ok(few.input_tokens > 0 && many.input_tokens > few.input_tokens + 500);
});

check('errors: 401, 404, 400', async () => {
  await assert.rejects(client({ apiKey: 'wrong' }).messages.create({ ...base, messages: says('hi') }), (e) => e instanceof Anthropic.AuthenticationError && e.error.error.type === 'authentication_error' && !!e.requestID);
  await assert.rejects(c.messages.create({ ...base, model: 'no-such', messages: says('hi') }), (e) => e instanceof Anthropic.NotFoundError && e.error.error.type === 'not_found_error');
  await assert.rejects(c.messages.create({ ...base, messages: [] }), (e) => e instanceof Anthropic.BadRequestError && e.error.error.type === 'invalid_request_error');
});

check('an error in mid-stream is raised', () => assert.rejects(c.messages.stream({ ...base, messages: says('demo:error') }).finalMessage()));

check('a full queue: 429, and the SDK comes again', async () => {
  const taken = await occupy({ waiting: true });
  const busy = (more) => client({ baseURL: busyURL.replace(/\/v1$/, ''), ...more }).messages.create({ ...base, messages: says('me too') });
  try {
    await assert.rejects(busy(), (e) => e instanceof Anthropic.RateLimitError && e.error.error.type === 'rate_limit_error');
    assert.ok((await busy({ maxRetries: 6 })).content[0].text);
  } finally { await taken.release(); }
}, 60_000);

check('a short deadline: 503, and the SDK comes again', async () => {
  const taken = await occupy({ waiting: false });
  const busy = (more) => client({ baseURL: busyURL.replace(/\/v1$/, ''), ...more }).messages.create({ ...base, messages: says('me too') });
  try {
    await assert.rejects(busy(), (e) => e.status === 503 && e.error.error.type === 'overloaded_error');
    assert.ok((await busy({ maxRetries: 6 })).content[0].text);
  } finally { await taken.release(); }
}, 60_000);
