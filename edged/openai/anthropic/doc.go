// Package anthropic makes chat completions of Anthropic's Messages API, and messages of what chat answers. It is pure: it
// knows nothing of HTTP, of providers or of the log, and imports nothing of ours.
//
//	q, problem := anthropic.Read(body)        // what was asked
//	chat, problem := q.Chat()                 // the chat request that asks for the same
//	run := anthropic.NewRun(q, id, model, n)  // one answer
//	out := run.Stream(p)                      // SSE bytes of chat, cut anywhere → SSE bytes of messages
//	out, ok := run.End()
//	body, ok := run.Whole(answer)             // an answer that is no stream
//
// What chat has no words for is refused by name (Problem), never dropped: only hints (cache_control, metadata beside
// user_id, service_tier, context_management) and what was thought under another server's seal (redacted_thinking) are.
package anthropic
