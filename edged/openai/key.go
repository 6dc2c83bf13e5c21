package openai

// key is a top-level member of a request's body that this package looks at.
type key uint8

const (
	keyNone key = iota
	keyModel
	keyStream
	keyText  // messages, prompt, input, suffix, instructions, system: text for the model
	keyTools // tools, functions: text whose names count too
	keyStreamOptions
	// From here on: what a generation policy can set.
	keyMaxTokens
	keyMaxCompletion
	keyMaxOutput
	keyTemperature
	keyTopP
	keyTopK
	keyMinP
	keyPresence
	keyFrequency
	keyRepetition
	keySeed
	keyStop
	keyReasoning
)

// keyOf must stay a switch over string(b): that does not allocate.
func keyOf(b []byte) key {
	switch string(b) {
	case "model":
		return keyModel
	case "stream":
		return keyStream
	case "messages", "prompt", "input", "suffix", "instructions", "system":
		return keyText
	case "tools", "functions":
		return keyTools
	case "stream_options":
		return keyStreamOptions
	case "max_tokens":
		return keyMaxTokens
	case "max_completion_tokens":
		return keyMaxCompletion
	case "max_output_tokens":
		return keyMaxOutput
	case "temperature":
		return keyTemperature
	case "top_p":
		return keyTopP
	case "top_k":
		return keyTopK
	case "min_p":
		return keyMinP
	case "presence_penalty":
		return keyPresence
	case "frequency_penalty":
		return keyFrequency
	case "repetition_penalty":
		return keyRepetition
	case "seed":
		return keySeed
	case "stop":
		return keyStop
	case "reasoning_effort":
		return keyReasoning
	}
	return keyNone
}
