package demo

import (
	"fmt"
	"strings"

	"iop/noded/adapter/chat"
)

// promptSize counts what came in.
type promptSize struct {
	words int
	parts int // messages, or prompts
}

func sizeOf(q *chat.Request) promptSize {
	s := promptSize{parts: len(q.Messages) + len(q.Prompts)}
	for _, m := range q.Messages {
		for _, p := range m.Parts {
			s.words += wordCount(p.Text)
		}
	}
	for _, in := range q.Prompts {
		s.words += inputWords(in)
	}
	return s
}

// inputWords counts the words of an input. Tokens are words.
func inputWords(in chat.Input) int { return len(in.Tokens) + wordCount(in.Text) }

func wordCount(text string) int { return len(strings.Fields(text)) }

// words are the n words of an answer, each but the first with the space before it.
func words(size promptSize, n int) []string {
	text := fmt.Sprintf("This is iop's built-in demo provider, not a language model. Your prompt had %s in %s. "+
		"The rest is only here for you to watch it stream:", plural(size.words, "word"), plural(size.parts, "message"))
	out := strings.Fields(text)
	for i := 1; len(out) < n; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return pieces(strings.Join(out[:n], " "))
}

// pieces cuts a text into words, each but the first with the space before it.
func pieces(text string) []string {
	var out []string
	for text != "" {
		end := strings.IndexByte(text[1:], ' ') + 1
		if end == 0 {
			end = len(text)
		}
		out = append(out, text[:end])
		text = text[end:]
	}
	return out
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// cutWords applies a bound and the stop sequences, and says why the answer ends: stop or length.
func cutWords(words []string, limit *int64, stops []string) ([]string, string) {
	reason := chat.FinishStop
	if limit != nil && *limit < int64(len(words)) {
		words, reason = words[:*limit], chat.FinishLength
	}
	whole := strings.Join(words, "")
	end := len(whole)
	for _, s := range stops {
		if at := strings.Index(whole, s); s != "" && at >= 0 && at < end {
			end, reason = at, chat.FinishStop
		}
	}
	return firstBytes(words, end), reason
}

// firstBytes keeps the first n bytes of the words.
func firstBytes(words []string, n int) []string {
	var kept []string
	for _, w := range words {
		if n <= 0 {
			break
		}
		w = w[:min(len(w), n)]
		n -= len(w)
		kept = append(kept, w)
	}
	return kept
}
