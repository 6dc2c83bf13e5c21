// Package talk is model servers that talk: one conversation, said as each kind of server says it.
//
// What a server says follows from the request alone (tools, stop, max_tokens, n …) and from a word script:NAME in what a
// user wrote: see Script. So the same request can be put to every kind of provider, and what a client gets be compared.
// OpenAI, vLLM and llama-server are spoken as they speak, Ollama by lines that were recorded of one, and an agent by
// objects on its output. Only e2e uses it.
//
// Where next: script.go (what is said), openai.go and ollama.go (how), failure.go (how it is said that something is
// wrong), agent.go (the command), server.go (what was heard).
package talk
