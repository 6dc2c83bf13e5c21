package adapter

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"math"
	"net/http"
	"strings"
	"time"
)

const (
	embedDims    = 256
	embedDimsMax = 4096
	embedInputs  = 2048 // of one request at most
)

type demoEmbedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // []float32, or base64 of little-endian float32s
}

type demoEmbeddings struct {
	Object string          `json:"object"`
	Data   []demoEmbedding `json:"data"`
	Model  string          `json:"model"`
	Usage  demoUsage       `json:"usage"`
}

// embed answers with vectors that depend on nothing but the words: the same text gives the same vector everywhere,
// and texts that share words are near each other.
func (d *Demo) embed(ctx context.Context, c *Call, a Answer) error {
	r, err := d.parse(c.Body)
	if err != nil {
		return err
	}
	inputs, dims, err := embedRequest(r)
	if err != nil {
		return err
	}
	if err := (pace{start: time.Now().Add(d.firstToken)}).wait(ctx, 0); err != nil {
		return err
	}
	out := demoEmbeddings{Object: "list", Model: r.Model, Data: []demoEmbedding{}}
	for i, text := range inputs {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := demoEmbedding{Object: "embedding", Index: i, Embedding: vector(text, dims)}
		if r.EncodingFormat == "base64" {
			e.Embedding = base64Of(vector(text, dims))
		}
		out.Data = append(out.Data, e)
		out.Usage.PromptTokens += wordCount(text)
	}
	out.Usage.TotalTokens = out.Usage.PromptTokens
	return answerJSON(a, http.StatusOK, out)
}

// embedRequest checks what embeddings have of their own.
func embedRequest(r *demoRequest) (inputs []string, dims int, err error) {
	inputs = texts(r.Input)
	if len(inputs) == 0 || len(inputs) > embedInputs {
		return nil, 0, refuse("input", "invalid_value", "input must be a text or a list of 1 to %d of them", embedInputs)
	}
	dims = embedDims
	if r.Dimensions != nil {
		dims = *r.Dimensions
	}
	if dims < 1 || dims > embedDimsMax {
		return nil, 0, refuse("dimensions", "invalid_value", "dimensions must be between 1 and %d", embedDimsMax)
	}
	if f := r.EncodingFormat; f != "" && f != "float" && f != "base64" {
		return nil, 0, refuse("encoding_format", "invalid_value", "encoding_format must be float or base64")
	}
	return inputs, dims, nil
}

// vector sums one pseudo-random vector per word and brings the sum to length 1.
func vector(text string, dims int) []float32 {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		words = []string{""}
	}
	sum := make([]float64, dims)
	for _, w := range words {
		addWord(sum, w)
	}
	var square float64
	for _, v := range sum {
		square += v * v
	}
	length := math.Sqrt(square)
	out := make([]float32, dims)
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

func base64Of(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}

func wordCount(text string) int { return len(strings.Fields(text)) }
