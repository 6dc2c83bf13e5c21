// LangChain JS: ChatOpenAI by chat and by responses, OpenAIEmbeddings.
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { z } from 'zod';
import { apiKey, assert, baseURL, busyURL, check, embed, occupy, quick, slow } from './world.mjs';

const model = (more = {}) => new ChatOpenAI({ model: quick, apiKey, maxRetries: 0, configuration: { baseURL: more.at ?? baseURL }, ...more });
const getWeather = { name: 'get_weather', description: 'The weather', schema: z.object({ city: z.enum(['Lisbon', 'Oslo']) }) };

for (const useResponsesApi of [false, true]) {
  const way = useResponsesApi ? 'responses' : 'chat';
  check(`${way}: invoke`, async () => {
    const r = await model({ useResponsesApi }).invoke('hi');
    assert.ok(r.text && r.usage_metadata.output_tokens > 0);
  });
  check(`${way}: stream`, async () => {
    let text = '', n = 0;
    for await (const chunk of await model({ useResponsesApi }).stream('hi')) { text += chunk.text; n++; }
    assert.ok(text.length > 10 && n > 5);
  });
  check(`${way}: abort`, async () => {
    const leave = new AbortController();
    let n = 0;
    try { for await (const _ of await model({ useResponsesApi, model: slow }).stream('count', { signal: leave.signal })) if (++n === 8) leave.abort(); } catch (e) { assert.match(`${e.name} ${e.message}`, /abort/i); }
    assert.ok(n >= 8 && n < 80);
  });
  check(`${way}: tools`, async () => {
    const m = model({ useResponsesApi }).bindTools([getWeather]);
    const asked = new HumanMessage('weather please');
    const r = await m.invoke([asked]);
    assert.equal(r.tool_calls[0].args.city, 'Lisbon');
    assert.ok((await m.invoke([asked, r, new ToolMessage({ tool_call_id: r.tool_calls[0].id, content: '21 degrees' })])).text);
  });
  check(`${way}: structured output`, async () => {
    const r = await model({ useResponsesApi }).withStructuredOutput(z.object({ good: z.boolean() }), { method: 'jsonSchema' }).invoke('grade it');
    assert.equal(typeof r.good, 'boolean');
  });
}

check('errors: 401, 404', async () => {
  await assert.rejects(model({ apiKey: 'wrong' }).invoke('hi'), (e) => e.status === 401);
  await assert.rejects(model({ model: 'no-such' }).invoke('hi'), (e) => e.status === 404);
});

check('comes again after a short deadline', async () => {
  const taken = await occupy({ waiting: false });
  try { assert.ok((await model({ at: busyURL, maxRetries: 6 }).invoke('me too')).text); } finally { await taken.release(); }
}, 60_000);

check('embeddings', async () => {
  const e = new OpenAIEmbeddings({ model: embed, apiKey, maxRetries: 0, configuration: { baseURL } });
  assert.equal((await e.embedDocuments(['a', 'bb'])).length, 2);
});
