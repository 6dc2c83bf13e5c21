// Package backend is a model server that does what a test tells it.
//
// It speaks OpenAI's chat completions, completions and embeddings over a real socket, answers each request by a Plan
// (chosen by the request's tag, else the default one), and records what it saw: order of arrival, how many ran at the
// same time, what was aborted. It decides nothing about admission; a request beyond its Limit is refused and counted
// as a violation, because the gateway promised that it would never happen. Only e2e uses it.
//
// Where next: plan.go (what a run does), backend.go and serve.go (the server), hold.go (its gate), run.go (what was seen), answer.go (the bytes).
package backend
