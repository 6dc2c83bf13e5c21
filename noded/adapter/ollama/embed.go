package ollama

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"iop/noded/adapter"
)

// vectors is the answer of /api/embed.
type vectors struct {
	Embeddings [][]float32 `json:"embeddings"`
	Prompt     int64       `json:"prompt_eval_count"`
}

// embed answers embeddings by one call.
func (r *run) embed(ctx context.Context) adapter.End {
	body := embedBody{Model: r.q.Model, Dimensions: r.q.Dimensions, KeepAlive: r.ollama.keepAlive}
	for _, in := range r.q.Inputs {
		body.Input = append(body.Input, in.Text)
	}
	if n := r.numCtx(); n > 0 {
		body.Options = map[string]any{"num_ctx": n}
	}
	var got collected
	end := r.send(ctx, "/api/embed", body, &got)
	switch {
	case end.Code != adapter.CodeOK:
		return end
	case got.status != http.StatusOK:
		return r.fail(ctx, newFailure(got.status, got.body.Bytes()))
	}
	var v vectors
	if err := json.Unmarshal(got.body.Bytes(), &v); err != nil {
		return r.fail(ctx, &failure{status: http.StatusBadGateway, text: "its answer is no JSON: " + err.Error()})
	}
	if len(v.Embeddings) != len(r.q.Inputs) {
		return r.fail(ctx, &failure{status: http.StatusBadGateway, text: fmt.Sprintf("%d embeddings for %d inputs", len(v.Embeddings), len(r.q.Inputs))})
	}
	r.ran = true
	for _, e := range v.Embeddings {
		if err := r.w.Embedding(e); err != nil && r.w.Err() == nil {
			return r.fail(ctx, &failure{status: http.StatusBadGateway, text: err.Error()})
		}
	}
	r.usage.Prompt = v.Prompt
	r.w.Usage(r.usage)
	return r.ended(ctx, r.w.End())
}
