package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"iop/noded/adapter"
)

// Probe asks whether Ollama answers; without a path it asks for its version. /api/tags?model=NAME asks whether the model
// is there as well: NAME may be given repeatedly.
func (a *Adapter) Probe(ctx context.Context, path string) error {
	if path == "" {
		path = "/api/version"
	}
	target, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if target != "/api/tags" || err != nil || len(values["model"]) == 0 {
		return a.tunnel.Probe(ctx, path)
	}
	return a.probePulled(ctx, values["model"])
}

// tags are the models that are there.
type tags struct {
	Models []struct {
		Name  string `json:"name"`
		Model string `json:"model"`
	} `json:"models"`
}

// probePulled asks whether all of these models are there.
func (a *Adapter) probePulled(ctx context.Context, models []string) error {
	deadline, _ := ctx.Deadline()
	var got collected
	end := a.tunnel.Do(ctx, &adapter.Call{Method: http.MethodGet, Path: "/api/tags", Header: http.Header{"User-Agent": {"iop"}}, Deadline: deadline}, &got)
	if end.Code != adapter.CodeOK {
		return fmt.Errorf("GET /api/tags: %s: %s", end.Code, end.Message)
	}
	if got.status != http.StatusOK {
		return fmt.Errorf("GET /api/tags: status %d", got.status)
	}
	var t tags
	if err := json.Unmarshal(got.body.Bytes(), &t); err != nil {
		return fmt.Errorf("GET /api/tags: %w", err)
	}
	there := map[string]bool{}
	for _, m := range t.Models {
		there[tagged(m.Name)], there[tagged(m.Model)] = true, true
	}
	for _, m := range models {
		if !there[tagged(m)] {
			return fmt.Errorf("ollama has no model %s: run 'ollama pull %s' there", m, m)
		}
	}
	return nil
}

// tagged adds the tag that Ollama takes where none is named.
func tagged(model string) string {
	if !strings.Contains(model[strings.LastIndex(model, "/")+1:], ":") {
		return model + ":latest"
	}
	return model
}

// collectedMax bounds an answer that is read whole: lists of models, and the vectors of 2048 inputs.
const collectedMax = 256 << 20

var errTooLarge = errors.New("the answer of ollama is too large")

// collected is the Answer that keeps all.
type collected struct {
	status int
	body   bytes.Buffer
}

func (c *collected) Head(status int, _ http.Header) error { c.status = status; return nil }

func (c *collected) Data(p []byte) error {
	if c.body.Len()+len(p) > collectedMax {
		return errTooLarge
	}
	c.body.Write(p)
	return nil
}
