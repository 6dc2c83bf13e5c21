// The official OpenAI SDK for Node.
import OpenAI from 'openai';
import { zodTextFormat, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { apiKey, assert, baseURL, busyURL, check, embed, occupy, picture, quick, sleep, slow, verdict, weather } from './world.mjs';

const client = (more = {}) => new OpenAI({ baseURL, apiKey, maxRetries: 0, ...more });
const c = client();
const says = (content) => [{ role: 'user', content }];
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'The weather in a city', parameters: weather, strict: true } }];

check('models: list, get, 404', async () => {
  const ids = [];
  for await (const m of c.models.list()) ids.push(m.id);
  assert.ok(ids.includes(quick) && ids.includes(slow), String(ids));
  assert.equal((await c.models.retrieve(quick)).id, quick);
  await assert.rejects(c.models.retrieve('no/such'), (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found');
});

check('chat', async () => {
  const { data, response } = await c.chat.completions.create({ model: quick, messages: says('hi') }).withResponse();
  assert.equal(data.model, quick);
  assert.ok(data.choices[0].message.content.length > 10);
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
  assert.ok(data._request_id && data._request_id === response.headers.get('x-request-id'));
  assert.ok(response.headers.get('x-iop-provider'));
});

check('chat: length, stop, n', async () => {
  const cut = await c.chat.completions.create({ model: quick, messages: says('hi'), max_completion_tokens: 3 });
  assert.equal(cut.choices[0].finish_reason, 'length');
  assert.equal(cut.usage.completion_tokens, 3);
  assert.equal((await c.chat.completions.create({ model: quick, messages: says('hi'), n: 2 })).choices.length, 2);
});

check('completions', async () => assert.ok((await c.completions.create({ model: quick, prompt: 'hi' })).choices[0].text));

check('stream, with usage', async () => {
  let text = '', usage, finish, chunks = 0;
  for await (const e of await c.chat.completions.create({ model: quick, messages: says('hi'), stream: true, stream_options: { include_usage: true } })) {
    assert.equal(e.model, quick);
    text += e.choices[0]?.delta?.content ?? '';
    finish = e.choices[0]?.finish_reason ?? finish;
    usage = e.usage ?? usage;
    chunks++;
  }
  assert.ok(text.length > 10 && chunks > 5 && finish === 'stop' && usage.completion_tokens > 0);
});

check('stream, without usage there is no chunk of it', async () => {
  for await (const e of await c.chat.completions.create({ model: quick, messages: says('hi'), stream: true })) {
    assert.ok(e.choices.length === 1 && !e.usage, JSON.stringify(e));
  }
});

check('stream comes piece by piece', async () => {
  const at = [];
  for await (const e of await c.chat.completions.create({ model: slow, messages: says('hi'), stream: true, max_tokens: 12 })) if (e.choices[0]?.delta?.content) at.push(performance.now());
  assert.ok(at.at(-1) - at[0] > 100, `all of it came within ${at.at(-1) - at[0]} ms`);
});

check('abort in mid-stream', async () => {
  const s = await c.chat.completions.create({ model: slow, messages: says('count'), stream: true });
  let n = 0;
  for await (const e of s) if (e.choices[0]?.delta?.content && ++n === 5) s.controller.abort();
  assert.ok(n >= 5 && n < 60);
});

check('timeout', () => assert.rejects(c.chat.completions.create({ model: slow, messages: says('count') }, { timeout: 200 }), OpenAI.APIConnectionTimeoutError));

check('tools, and what comes back from them', async () => {
  const asked = says('What is the weather in Lisbon?');
  const r = await c.chat.completions.create({ model: quick, messages: asked, tools });
  assert.equal(r.choices[0].finish_reason, 'tool_calls');
  const call = r.choices[0].message.tool_calls[0];
  assert.equal(JSON.parse(call.function.arguments).city, 'Lisbon');
  const told = await c.chat.completions.create({ model: quick, tools, messages: [...asked, r.choices[0].message, { role: 'tool', tool_call_id: call.id, content: '21 degrees' }] });
  assert.ok(told.choices[0].message.content);
});

check('tools: the runner, streamed', async () => {
  let ran = 0;
  const runner = c.chat.completions.runTools({
    model: quick, stream: true, messages: says('weather please'),
    tools: [{ type: 'function', function: { name: 'get_weather', parameters: weather, parse: JSON.parse, function: ({ city }) => { ran++; return `21 degrees in ${city}`; } } }],
  });
  assert.ok(await runner.finalContent());
  assert.equal(ran, 1);
});

check('structured output', async () => {
  const r = await c.chat.completions.create({ model: quick, messages: says('grade it'), response_format: { type: 'json_schema', json_schema: { name: 'verdict', schema: verdict, strict: true } } });
  assert.equal(JSON.parse(r.choices[0].message.content).grade, 3);
  const parsed = await c.chat.completions.parse({ model: quick, messages: says('grade it'), response_format: zodResponseFormat(z.object({ good: z.boolean() }), 'v') });
  assert.equal(typeof parsed.choices[0].message.parsed.good, 'boolean');
});

check('images are taken', async () => {
  const r = await c.chat.completions.create({ model: quick, messages: says([{ type: 'text', text: 'what is it?' }, { type: 'image_url', image_url: { url: picture } }]) });
  assert.ok(r.id);
});

check('embeddings: numbers and base64 are the same', async () => {
  const numbers = await c.embeddings.create({ model: embed, input: ['a', 'bb'], encoding_format: 'float' });
  const packed = await c.embeddings.create({ model: embed, input: ['a', 'bb'] });
  assert.equal(numbers.data.length, 2);
  assert.ok(Math.abs(numbers.data[1].embedding[0] - packed.data[1].embedding[0]) < 1e-4);
  assert.equal(numbers.data[0].embedding.length, packed.data[0].embedding.length);
});

check('errors: 401, 404, 400', async () => {
  await assert.rejects(client({ apiKey: 'wrong' }).chat.completions.create({ model: quick, messages: says('hi') }), (e) => e instanceof OpenAI.AuthenticationError && e.code === 'invalid_api_key' && e.type === 'invalid_request_error');
  await assert.rejects(c.chat.completions.create({ model: 'no-such', messages: says('hi') }), (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found' && e.param === 'model' && !!e.requestID);
  await assert.rejects(c.chat.completions.create({ model: 7, messages: says('hi') }), OpenAI.BadRequestError);
  await assert.rejects(c.post('/nowhere', { body: {} }), (e) => e.status === 404 && e.code === 'unknown_url');
});

check('an error in mid-stream is raised', async () => {
  let n = 0;
  await assert.rejects(async () => { for await (const e of await c.chat.completions.create({ model: quick, messages: says('demo:error'), stream: true })) if (e.choices[0]?.delta?.content) n++; }, (e) => /demo|provider|terminated|aborted/i.test(String(e?.message ?? e)));
  assert.ok(n > 0);
});

check('a full queue: 429 with the time to wait, and the SDK comes again', async () => {
  const taken = await occupy({ waiting: true });
  const busy = (more) => client({ baseURL: busyURL, ...more }).chat.completions.create({ model: quick, messages: says('me too') });
  try {
    await assert.rejects(busy(), (e) => e instanceof OpenAI.RateLimitError && e.code === 'queue_full' && Number(e.headers.get('retry-after')) >= 1 && Number(e.headers.get('retry-after')) <= 60 && Number(e.headers.get('retry-after-ms')) >= 1000);
    const again = busy({ maxRetries: 6 });
    assert.ok((await again).choices[0].message.content);
  } finally { await taken.release(); }
}, 60_000);

check('a short deadline: 503, and the SDK comes again', async () => {
  const taken = await occupy({ waiting: false });
  const busy = (more) => client({ baseURL: busyURL, ...more }).chat.completions.create({ model: quick, messages: says('and me') });
  try {
    await assert.rejects(busy(), (e) => e instanceof OpenAI.InternalServerError && e.status === 503 && e.code === 'queue_timeout' && Number(e.headers.get('retry-after')) >= 1);
    assert.ok((await busy({ maxRetries: 6 })).choices[0].message.content);
  } finally { await taken.release(); }
}, 60_000);

const over = ['completed', 'failed', 'cancelled', 'incomplete'];
const settled = async (id) => { for (;;) { const r = await c.responses.retrieve(id); if (over.includes(r.status)) return r; await sleep(30); } };

check('responses: whole, cut, stream, tools, structured', async () => {
  const r = await c.responses.create({ model: quick, input: 'hi', instructions: 'be short', metadata: { k: 'v' } });
  assert.ok(r.status === 'completed' && r.output_text && r.id.startsWith('resp_') && r.usage.total_tokens > 0 && r.model === quick);
  const cut = await c.responses.create({ model: quick, input: 'hi', max_output_tokens: 3 });
  assert.ok(cut.status === 'incomplete' && cut.incomplete_details.reason === 'max_output_tokens');
  let next = 0, text = '', last;
  for await (const e of await c.responses.create({ model: quick, input: 'hi', stream: true })) {
    assert.equal(e.sequence_number, next++);
    if (e.type === 'response.output_text.delta') text += e.delta;
    last = e;
  }
  assert.ok(last.type === 'response.completed' && last.response.output[0].content[0].text === text);
  const t = [{ type: 'function', name: 'get_weather', parameters: weather, strict: true }];
  const called = (await c.responses.create({ model: quick, input: 'weather please', tools: t })).output.find((o) => o.type === 'function_call');
  assert.equal(JSON.parse(called.arguments).city, 'Lisbon');
  assert.ok((await c.responses.create({ model: quick, tools: t, input: [{ role: 'user', content: 'weather please' }, called, { type: 'function_call_output', call_id: called.call_id, output: '21' }] })).output_text);
  const parsed = await c.responses.parse({ model: quick, input: 'grade it', text: { format: zodTextFormat(z.object({ good: z.boolean() }), 'v') } });
  assert.equal(typeof parsed.output_parsed.good, 'boolean');
});

check('responses: stored, listed, gone on from, deleted', async () => {
  const r = await c.responses.create({ model: quick, input: 'remember me' });
  assert.equal((await c.responses.retrieve(r.id)).output_text, r.output_text);
  const items = [];
  for await (const i of c.responses.inputItems.list(r.id)) items.push(i);
  assert.match(JSON.stringify(items), /remember me/);
  assert.equal((await c.responses.create({ model: quick, input: 'more', previous_response_id: r.id })).previous_response_id, r.id);
  await c.responses.delete(r.id);
  await assert.rejects(c.responses.retrieve(r.id), OpenAI.NotFoundError);
});

check('responses in the background: polled, cancelled', async () => {
  const r = await c.responses.create({ model: quick, input: 'hi', background: true });
  assert.ok(['queued', 'in_progress'].includes(r.status) && r.background);
  const end = await settled(r.id);
  assert.ok(end.status === 'completed' && end.output_text && end.usage.output_tokens > 0);
  const long = await c.responses.create({ model: slow, input: 'count', background: true });
  await sleep(100);
  assert.equal((await c.responses.cancel(long.id)).status, 'cancelled');
  assert.equal((await c.responses.cancel(long.id)).status, 'cancelled');
});

check('responses in the background: followed after the stream broke', async () => {
  const leave = new AbortController();
  let id, seen = -1, text = '', n = 0;
  try {
    for await (const e of await c.responses.create({ model: slow, input: 'count', background: true, stream: true, max_output_tokens: 40 }, { signal: leave.signal })) {
      id ??= e.response?.id;
      seen = e.sequence_number;
      if (e.type === 'response.output_text.delta') { text += e.delta; if (++n === 5) { leave.abort(); break; } }
    }
  } catch (e) { if (!(e instanceof OpenAI.APIUserAbortError)) throw e; }
  let want = seen + 1, last;
  for await (const e of await c.responses.retrieve(id, { stream: true, starting_after: seen })) {
    assert.equal(e.sequence_number, want++);
    if (e.type === 'response.output_text.delta') text += e.delta;
    last = e;
  }
  assert.equal(last.type, 'response.incomplete');
  assert.equal(text, (await c.responses.retrieve(id)).output_text);
}, 60_000);
