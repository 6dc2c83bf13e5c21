package e2e

import (
	"fmt"

	"iop/e2e/backend/talk"
)

// endConforms are about streams, ends and failures.
func endConforms() []conform {
	return []conform{
		{name: "a stream", real: true, stream: true, body: says("hello"), check: inPieces},
		{name: "a stream with usage", real: true, stream: true, usage: true, body: says("hello"), check: inPieces},
		{name: "a stream that says it wants no usage", real: true, stream: true, body: says("hello") + `,"stream_options":{"include_usage":false}`, check: inPieces},
		{name: "characters in pieces", stream: true, body: script(talk.Split, ""), check: func(s *spoken) string {
			if c := s.first(); c.text != talk.FirstPiece+talk.SecondPiece && s.answer.header.Get("X-Iop-Provider") != "demo" {
				return fmt.Sprintf("text %q", c.text)
			}
			return inPieces(s)
		}},
		{name: "nothing is said", body: script(talk.Empty, "demo:empty"), check: silent},
		{name: "nothing is said in a stream", stream: true, body: script(talk.Empty, "demo:empty"), check: silent},
		{
			name: "a refusal", body: script(talk.Refuse, "demo:refuse"), but: map[string]string{"ollama": leftOut, "cli": leftOut},
			check: func(s *spoken) string {
				if c := s.first(); c.refusal == "" || c.text != "" {
					return fmt.Sprintf("refusal %q, text %q", c.refusal, c.text)
				}
				return ""
			},
		},
		{
			name: "an error before the answer", body: script(talk.Fail, "demo:error"), usual: "502 `provider_error`",
			but: map[string]string{"openai_compat": "500", "vllm": "500 `InternalServerError`, flat", "llamacpp": "500 `500`", "demo": "500 `demo_error`"},
		},
		{
			name: "an error before a stream", stream: true, body: script(talk.Fail, "demo:error"), usual: "502 `provider_error`",
			but: map[string]string{"openai_compat": "500", "vllm": "500 `InternalServerError`, flat", "llamacpp": "500 `500`", "demo": "error event `demo_error`"},
		},
		{
			name: "an error in an answer", body: script(talk.Break, "demo:error"), usual: "502 `provider_error`", but: map[string]string{"demo": "500 `demo_error`"},
		},
		{
			name: "an error in a stream", stream: true, body: script(talk.Break, "demo:error"), usual: "error event `provider_error`",
			but: map[string]string{"demo": "error event `demo_error`", "llamacpp": "error event `500`"},
		},
		{
			name: "a server that is loading or full", body: script(talk.Loading, "demo:error"),
			but: map[string]string{
				"openai_compat": "503 `overloaded`", "vllm": "503 `QueueOverflowError`, flat", "llamacpp": "503 `503`", "ollama": "503 `provider_busy`", "cli": "502 `provider_error`", "demo": "500 `demo_error`",
			},
		},
		{name: "the client leaves", body: script(talk.Linger, ""), stream: true, run: abandoned},
		{name: "completions", real: true, path: "/v1/completions", body: `"prompt":"hello"`, but: noEndpoint()},
		{name: "completions in a stream", real: true, path: "/v1/completions", stream: true, usage: true, body: `"prompt":"hello"`, check: inPieces, but: noEndpoint()},
		{
			name: "embeddings", real: true, path: "/v1/embeddings", body: `"input":["a","b"]`, but: noEndpoint(),
			check: func(s *spoken) string {
				if s.vectors != 2 {
					return fmt.Sprintf("%d embeddings", s.vectors)
				}
				return ""
			},
		},
	}
}

func noEndpoint() map[string]string { return map[string]string{"cli": "404 `unsupported_by_model`"} }

func conforms() []conform {
	var all []conform
	for _, part := range [][]conform{messageConforms(), toolConforms(), generationConforms(), endConforms()} {
		all = append(all, part...)
	}
	return all
}

func inPieces(s *spoken) string {
	if s.pieces == 0 || s.first().text == "" {
		return fmt.Sprintf("%d pieces", s.pieces)
	}
	return ""
}

func silent(s *spoken) string {
	if c := s.first(); c.text != "" || c.finish != "stop" {
		return fmt.Sprintf("text %q, finish %q", c.text, c.finish)
	}
	return ""
}
