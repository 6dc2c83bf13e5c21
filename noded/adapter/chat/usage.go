package chat

import (
	"time"
	"unicode/utf8"
)

// Usage counts tokens. Cached and Reasoning are parts of Prompt and Completion.
type Usage struct {
	Prompt, Completion, Cached, Reasoning int64
	Took                                  Took
}

// Took is what a backend says of the time it took, zero if it does not. OpenAI has no place for it: it is a member
// durations_ms of the usage, left out if all is zero.
type Took struct {
	Load       time.Duration // of the model, if it was not loaded
	Prompt     time.Duration
	Completion time.Duration
}

type took struct {
	Load       float64 `json:"load"`
	Prompt     float64 `json:"prompt"`
	Completion float64 `json:"completion"`
}

func (t Took) shape() *took {
	if t == (Took{}) {
		return nil
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return &took{ms(t.Load), ms(t.Prompt), ms(t.Completion)}
}

type usage struct {
	Prompt            int64        `json:"prompt_tokens"`
	Completion        *int64       `json:"completion_tokens,omitempty"` // embeddings have none
	Total             int64        `json:"total_tokens"`
	PromptDetails     *cachedPart  `json:"prompt_tokens_details,omitempty"`
	CompletionDetails *thoughtPart `json:"completion_tokens_details,omitempty"`
	Took              *took        `json:"durations_ms,omitempty"`
}

type cachedPart struct {
	Cached int64 `json:"cached_tokens"`
}

type thoughtPart struct {
	Reasoning int64 `json:"reasoning_tokens"`
}

// shape is the usage as OpenAI writes it. Details that are not known are left out.
func (u Usage) shape(completion bool) usage {
	s := usage{Prompt: u.Prompt, Total: u.Prompt, Took: u.Took.shape()}
	if completion {
		s.Completion = &u.Completion
		s.Total += u.Completion
	}
	if u.Cached > 0 {
		s.PromptDetails = &cachedPart{u.Cached}
	}
	if u.Reasoning > 0 {
		s.CompletionDetails = &thoughtPart{u.Reasoning}
	}
	return s
}

func (u Usage) append(b []byte, completion bool) []byte {
	return append(b, mustJSON(u.shape(completion))...)
}

// TokenLogprob is a token of the answer and how likely it was.
type TokenLogprob struct {
	Token   string
	Logprob float64 // natural logarithm, at most 0
	Bytes   []int   // of the token; nil: those of Token
	Top     []TokenLogprob
}

type chatToken struct {
	Token   string       `json:"token"`
	Logprob float64      `json:"logprob"`
	Bytes   []int        `json:"bytes"`
	Top     *[]chatToken `json:"top_logprobs,omitempty"`
}

// chatTokens is what a chat choice says of its tokens.
func chatTokens(tokens []TokenLogprob) []chatToken {
	out := make([]chatToken, 0, len(tokens))
	for _, t := range tokens {
		c := chatTokenOf(t)
		top := make([]chatToken, 0, len(t.Top))
		for _, other := range t.Top {
			top = append(top, chatTokenOf(other))
		}
		c.Top = &top
		out = append(out, c)
	}
	return out
}

func chatTokenOf(t TokenLogprob) chatToken {
	bytes := t.Bytes
	if bytes == nil {
		bytes = make([]int, 0, len(t.Token))
		for i := range len(t.Token) {
			bytes = append(bytes, int(t.Token[i]))
		}
	}
	return chatToken{Token: t.Token, Logprob: t.Logprob, Bytes: bytes}
}

type textLogprobs struct {
	Tokens   []string             `json:"tokens"`
	Logprobs []float64            `json:"token_logprobs"`
	Top      []map[string]float64 `json:"top_logprobs"`
	Offsets  []int                `json:"text_offset"`
}

// textTokens is what a choice of older completions says of its tokens, which begin at offset; it moves that on.
func textTokens(tokens []TokenLogprob, offset *int) textLogprobs {
	var out textLogprobs
	for _, t := range tokens {
		top := map[string]float64{}
		for _, other := range t.Top {
			top[other.Token] = other.Logprob
		}
		out.Tokens = append(out.Tokens, t.Token)
		out.Logprobs = append(out.Logprobs, t.Logprob)
		out.Top = append(out.Top, top)
		out.Offsets = append(out.Offsets, *offset)
		*offset += utf8.RuneCountInString(t.Token)
	}
	return out
}
