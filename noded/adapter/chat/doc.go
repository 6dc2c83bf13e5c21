// Package chat is OpenAI's shape for adapters whose backend is no OpenAI server: Read turns the bytes of a request to
// /v1/chat/completions, /v1/completions or /v1/embeddings into a Request, and a Writer renders what a backend says into
// OpenAI's answer, streamed or whole.
//
// It knows no backend, no network and no run: the adapters call it (ollama, cli, demo), and how a run ended is theirs to
// say. It is strict about types, as OpenAI is (a 400 that names the parameter), and tolerant about what it does not know,
// which stays in Request.Extra. Start reading at request.go, then writer.go.
package chat
