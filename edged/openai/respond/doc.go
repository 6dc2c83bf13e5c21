// Package respond builds OpenAI's Responses API on chat completions: it reads a request, writes the chat request that
// asks a backend for the same, and makes a response and its stream of events of what the backend answers.
//
//	body ──Read──▶ Request ──Chat──▶ chat request ─▶ backend ─▶ chat answer ──Run.Write, End──▶ Event…, Object
//
// Everything here is pure: no sockets, no clock, no storage. The caller (edged/openai) gives ids and times, finds earlier
// responses, and sends the events. An answer that broke off never becomes a completed response.
//
// # What becomes of tools
//
// Functions stay functions. A custom tool, local_shell and the functions of a namespace become functions, and calls of
// them are turned back (tool.go). Tools that OpenAI runs itself and agents list by habit (web_search, image_generation,
// tool_search) are left out, since no backend here can run them; other tools of that kind (file_search,
// code_interpreter, computer use, mcp) are refused, because a request that lists them counts on them.
//
// # What becomes of reasoning
//
// A backend's reasoning_content is a reasoning item: with its text as content, or as a summary if the request asks for
// reasoning.summary. Items that are passed back go to the backend as reasoning_content of the message that they belong to.
//
// Where next: request.go, item.go and tool.go (reading), chat.go (the chat request), run.go and output.go (events),
// frame.go (event streams of chat), object.go (the response).
package respond
