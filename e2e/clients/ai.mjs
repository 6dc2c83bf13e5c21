// The Vercel AI SDK: @ai-sdk/openai-compatible, and @ai-sdk/openai by chat and by responses.
import { APICallError, embedMany, generateText, jsonSchema, Output, RetryError, stepCountIs, streamText, tool } from 'ai';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { apiKey, assert, baseURL, busyURL, check, dot, embed, occupy, quick, slow, verdict, weather } from './world.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;
const compatible = (more = {}) => createOpenAICompatible({ name: 'iop', baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true, ...more });
const ways = {
  compatible: (m, more) => compatible(more).chatModel(m),
  'openai chat': (m, more) => createOpenAI({ baseURL, apiKey, ...more }).chat(m),
  'openai responses': (m, more) => createOpenAI({ baseURL, apiKey, ...more }).responses(m),
};
const quiet = { maxRetries: 0, onError() {} };
const cause = (e) => (RetryError.isInstance(e) ? e.lastError : e);

for (const [way, model] of Object.entries(ways)) {
  check(`${way}: text`, async () => {
    const r = await generateText({ ...quiet, model: model(quick), prompt: 'hi' });
    assert.ok(r.text && r.finishReason === 'stop' && r.usage.inputTokens > 0 && r.usage.outputTokens > 0);
    assert.equal((await generateText({ ...quiet, model: model(quick), prompt: 'hi', maxOutputTokens: 3 })).finishReason, 'length');
  });
  check(`${way}: stream`, async () => {
    const s = streamText({ ...quiet, model: model(quick), prompt: 'hi' });
    let n = 0;
    for await (const _ of s.textStream) n++;
    assert.ok(n > 3 && (await s.finishReason) === 'stop' && (await s.usage).outputTokens > 0);
  });
  check(`${way}: abort`, async () => {
    const leave = new AbortController();
    let n = 0, aborted = false;
    for await (const part of streamText({ ...quiet, model: model(slow), prompt: 'count', abortSignal: leave.signal }).fullStream) {
      if (part.type === 'text-delta' && ++n === 5) leave.abort();
      aborted ||= part.type === 'abort';
    }
    assert.ok(aborted && n >= 5 && n < 60);
  });
  check(`${way}: tools in a loop`, async () => {
    const cities = [];
    const tools = { get_weather: tool({ description: 'The weather', inputSchema: jsonSchema(weather), execute: async ({ city }) => { cities.push(city); return '21 degrees'; } }) };
    const r = await generateText({ ...quiet, model: model(quick), prompt: 'weather please', tools, stopWhen: stepCountIs(3) });
    assert.ok(r.text && r.steps.length === 2);
    const s = streamText({ ...quiet, model: model(quick), prompt: 'weather please', tools, stopWhen: stepCountIs(3) });
    assert.ok(await s.text);
    assert.deepEqual(cities, ['Lisbon', 'Lisbon']);
  });
  check(`${way}: structured output`, async () => {
    const r = await generateText({ ...quiet, model: model(quick), prompt: 'grade it', output: Output.object({ schema: jsonSchema(verdict) }) });
    assert.equal(r.output.grade, 3);
  });
  check(`${way}: an image`, async () => {
    const r = await generateText({ ...quiet, model: model(quick), messages: [{ role: 'user', content: [{ type: 'text', text: 'what is it?' }, { type: 'image', image: Buffer.from(dot, 'base64'), mediaType: 'image/png' }] }] });
    assert.ok(r.text);
  });
  check(`${way}: errors`, async () => {
    const fails = async (m, status, retryable) => assert.rejects(generateText({ ...quiet, model: m, prompt: 'hi' }), (e) => { e = cause(e); return APICallError.isInstance(e) && e.statusCode === status && e.isRetryable === retryable && !!e.data?.error?.message; });
    await fails(model(quick, { apiKey: 'wrong' }), 401, false);
    await fails(model('no-such'), 404, false);
  });
  check(`${way}: comes again after a full queue`, async () => {
    const taken = await occupy({ waiting: true });
    try {
      const r = await generateText({ model: model(quick, { baseURL: busyURL }), prompt: 'me too', maxRetries: 6 });
      assert.ok(r.text);
    } finally { await taken.release(); }
  }, 60_000);
}

check('embeddings', async () => {
  const r = await embedMany({ maxRetries: 0, model: compatible().embeddingModel(embed), values: ['a', 'bb'] });
  assert.ok(r.embeddings.length === 2 && r.embeddings[0].length > 1);
});
