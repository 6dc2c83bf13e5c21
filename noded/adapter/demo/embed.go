package demo

import (
	"context"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"iop/noded/adapter/chat"
)

const (
	dims    = 256
	dimsMax = 4096
)

// embed answers with vectors that depend on nothing but the words: the same text gives the same vector everywhere,
// and texts that share words are near each other.
func (d *Demo) embed(ctx context.Context, q *chat.Request, w *chat.Writer) error {
	n := q.Dimensions
	if n == 0 {
		n = dims
	}
	if n > dimsMax {
		return &chat.Problem{
			Status: http.StatusBadRequest, Code: "invalid_value", Param: "dimensions",
			Message: "the demo provider has at most " + strconv.Itoa(dimsMax) + " dimensions", Cure: "ask for fewer",
		}
	}
	if err := (pace{start: time.Now().Add(d.firstToken)}).wait(ctx, 0); err != nil {
		return err
	}
	var usage chat.Usage
	for _, in := range q.Inputs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.Embedding(vector(in, n)); err != nil {
			return err
		}
		usage.Prompt += int64(inputWords(in))
	}
	w.Usage(usage)
	return w.End()
}

// vector sums one pseudo-random vector per word and brings the sum to length 1. Tokens are words.
func vector(in chat.Input, n int) []float32 {
	words := strings.Fields(strings.ToLower(in.Text))
	for _, t := range in.Tokens {
		words = append(words, strconv.FormatInt(t, 10))
	}
	if len(words) == 0 {
		words = []string{""}
	}
	sum := make([]float64, n)
	for _, w := range words {
		addWord(sum, w)
	}
	var square float64
	for _, v := range sum {
		square += v * v
	}
	length := math.Sqrt(square)
	out := make([]float32, n)
	for i, v := range sum {
		out[i] = float32(v / length)
	}
	return out
}

// addWord adds a word's own vector: numbers of a splitmix64 sequence that its hash begins, between -1 and 1.
func addWord(sum []float64, word string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(word)) // a hash takes everything
	state := h.Sum64()
	for i := range sum {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		sum[i] += float64(int64(z)) / (1 << 63)
	}
}
