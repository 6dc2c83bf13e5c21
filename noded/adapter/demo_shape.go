package adapter

// chatShape frames an answer as chat completions do.
type chatShape struct{}

type chatMessage struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"`
}

type chatDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type chatChoice struct {
	Index        int          `json:"index"`
	Message      *chatMessage `json:"message,omitempty"`
	Delta        *chatDelta   `json:"delta,omitempty"`
	Logprobs     *struct{}    `json:"logprobs"`
	FinishReason *string      `json:"finish_reason"`
}

func (chatShape) size(r *demoRequest) (promptSize, error) {
	if len(r.Messages) == 0 {
		return promptSize{}, refuse("messages", "missing_required_parameter", "you must provide messages")
	}
	s := promptSize{parts: len(r.Messages)}
	for _, m := range r.Messages {
		s.words += contentWords(m.Content)
	}
	return s, nil
}

func (chatShape) object(stream bool) string {
	if stream {
		return "chat.completion.chunk"
	}
	return "chat.completion"
}

func (chatShape) prefix() string { return "chatcmpl-" }

func (chatShape) opening() any {
	none := ""
	return chatChoice{Delta: &chatDelta{Role: "assistant", Content: &none}}
}

func (chatShape) piece(text string) any { return chatChoice{Delta: &chatDelta{Content: &text}} }

func (chatShape) closing(reason string) any {
	return chatChoice{Delta: &chatDelta{}, FinishReason: &reason}
}

func (chatShape) whole(text, reason string) any {
	return chatChoice{Message: &chatMessage{Role: "assistant", Content: text}, FinishReason: &reason}
}

// textShape frames an answer as the older completions do.
type textShape struct{}

type textChoice struct {
	Index        int       `json:"index"`
	Text         string    `json:"text"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

func (textShape) size(r *demoRequest) (promptSize, error) {
	prompts := texts(r.Prompt)
	if len(prompts) != 1 {
		return promptSize{}, refuse("prompt", "unsupported_value", "the demo provider takes exactly one prompt")
	}
	return promptSize{words: wordCount(prompts[0]), parts: 1}, nil
}

func (textShape) object(bool) string { return "text_completion" }

func (textShape) prefix() string { return "cmpl-" }

func (textShape) opening() any { return nil }

func (textShape) piece(text string) any { return textChoice{Text: text} }

func (textShape) closing(reason string) any { return textChoice{FinishReason: &reason} }

func (textShape) whole(text, reason string) any { return textChoice{Text: text, FinishReason: &reason} }
