package chat

import (
	"encoding/json"
	"math"
)

const (
	inputsMax     = 2048 // of one request, as at OpenAI
	dimensionsMax = 65536
)

func (q *Request) readCompletion(f fields) {
	q.Prompts = readInputs(f, "prompt")
	q.readGeneration(f)
	q.MaxTokens = f.integer("max_tokens", 0, math.MaxInt64)
	if n := f.integer("max_completion_tokens", 0, math.MaxInt64); n != nil {
		q.MaxTokens = n
	}
	q.Echo = f.yes("echo")
	q.BestOf = q.N
	if n := f.integer("best_of", int64(q.N), choicesMax); n != nil {
		q.BestOf = int(*n)
	}
	if raw, ok := f.raw["logprobs"]; ok && string(raw) == "false" {
		delete(f.raw, "logprobs") // what chat completions take
	}
	if n := f.integer("logprobs", 0, 20); n != nil {
		q.Logprobs, q.TopLogprobs = true, int(*n)
	}
}

func (q *Request) readEmbedding(f fields) {
	q.Inputs = readInputs(f, "input")
	q.EncodingFormat = f.oneOf("encoding_format", "float", "base64")
	if n := f.integer("dimensions", 1, dimensionsMax); n != nil {
		q.Dimensions = int(*n)
	}
}

// readInputs reads a text, a list of texts, a text's tokens, or a list of those.
func readInputs(f fields, name string) []Input {
	raw, ok := f.take(name)
	if !ok {
		f.missing(name)
		return nil
	}
	switch raw[0] {
	case '"':
		return []Input{{Text: f.asText(name, raw)}}
	case '[':
	default:
		f.mistyped(name, "a string or an array", raw)
		return nil
	}
	items, _ := f.asList(name, raw)
	if len(items) == 0 {
		f.refuse(name, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", name)
		return nil
	}
	if items[0][0] != '"' && items[0][0] != '[' {
		return []Input{{Tokens: readTokens(f, name, items)}}
	}
	if len(items) > inputsMax {
		f.refuse(name, "array_above_max_length", "Invalid '%s': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", name, inputsMax, len(items))
		return nil
	}
	var inputs []Input
	for i, raw := range items {
		at := item(name, i)
		if raw[0] != '[' {
			inputs = append(inputs, Input{Text: f.asText(at, raw)})
			continue
		}
		tokens, _ := f.asList(at, raw)
		if len(tokens) == 0 {
			f.refuse(at, "empty_array", "Invalid '%s': empty array.", at)
			return nil
		}
		inputs = append(inputs, Input{Tokens: readTokens(f, at, tokens)})
	}
	return inputs
}

func readTokens(f fields, at string, items []json.RawMessage) []int64 {
	tokens := make([]int64, len(items))
	for i, raw := range items {
		n, ok := wholeNumber(raw)
		if !ok || n < 0 {
			f.mistyped(item(at, i), "a token, an integer from 0", raw)
			return nil
		}
		tokens[i] = n
	}
	return tokens
}
