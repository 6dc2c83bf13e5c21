package adapter

import (
	"fmt"
	"strings"
)

// demoWords are the n words of an answer, each but the first with the space before it.
func demoWords(size promptSize, n int) []string {
	text := fmt.Sprintf("This is iop's built-in demo provider, not a language model. Your prompt had %s in %s. "+
		"The rest is only here for you to watch it stream:", plural(size.words, "word"), plural(size.parts, "message"))
	words := strings.Fields(text)
	for i := 1; len(words) < n; i++ {
		words = append(words, fmt.Sprint(i))
	}
	words = words[:n]
	for i := 1; i < len(words); i++ {
		words[i] = " " + words[i]
	}
	return words
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// cutWords applies a bound and the stop sequences, and says why the answer ends: stop or length.
func cutWords(words []string, limit *int, stops []string) ([]string, string) {
	reason := "stop"
	if limit != nil && *limit < len(words) {
		words, reason = words[:*limit], "length"
	}
	whole := strings.Join(words, "")
	end := len(whole)
	for _, s := range stops {
		if at := strings.Index(whole, s); s != "" && at >= 0 && at < end {
			end, reason = at, "stop"
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
