package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Glance is what a backend tells of itself, for people. Nothing is decided by it: what a backend may have in flight is
// its provider's capacity, whatever it says.
type Glance struct {
	// Numbers by name: running, waiting (requests), slots, kv_use (0 to 1), context_tokens, memory_bytes.
	Numbers map[string]float64
	Words   map[string]string // version, status, model, ...
	Models  []string          // in memory, or served where that is not told
	Sources []string          // the paths that were read
	Error   string            // why there is nothing, or not all
}

// source is a path, and who reads what comes from there.
type source struct {
	path string
	read func(g *Glance, body []byte) error
}

// Bounds of a glance.
const (
	glanceWait     = 2 * time.Second // over all its sources
	glanceBytesMax = 1 << 20         // of each: vLLM's metrics have some 200 KB
)

// Look asks a backend of a provider's type what it tells of itself. It takes two seconds at most, and never fails as a
// whole: what was not to be had is in Error.
func Look(ctx context.Context, c OpenAIConfig, providerType string) *Glance {
	ctx, cancel := context.WithTimeout(ctx, glanceWait)
	defer cancel()
	g := &Glance{Numbers: map[string]float64{}, Words: map[string]string{}}
	sources := KindOf(providerType).sources
	if len(sources) == 0 {
		g.Error = fmt.Sprintf("a backend of type %s tells nothing of itself", providerType)
		return g
	}
	o, err := NewOpenAI(c)
	if err != nil {
		g.Error = err.Error()
		return g
	}
	defer o.Close()
	var errs, missing []error
	for _, s := range sources {
		switch err := o.read(ctx, s, g); {
		case errors.Is(err, errNotThere):
			missing = append(missing, err)
		case err != nil:
			errs = append(errs, err)
		default:
			g.Sources = append(g.Sources, s.path)
		}
	}
	if len(g.Sources) == 0 {
		errs = append(errs, missing...)
	}
	if err := errors.Join(errs...); err != nil {
		g.Error = err.Error()
	}
	return g
}

// errNotThere: the server has no such route, or has it switched off, as llama-server its metrics.
var errNotThere = errors.New("the server has no such page")

func (o *OpenAI) read(ctx context.Context, s source, g *Glance) error {
	body, err := o.get(ctx, s.path)
	if err != nil {
		return err
	}
	if err := s.read(g, body); err != nil {
		return fmt.Errorf("GET %s: %w", s.path, err)
	}
	return nil
}

// get fetches a small document.
func (o *OpenAI) get(ctx context.Context, path string) ([]byte, error) {
	deadline, _ := ctx.Deadline()
	var got document
	end := o.Do(ctx, &Call{Method: http.MethodGet, Path: path, Header: http.Header{"User-Agent": {"iop"}}, Deadline: deadline}, &got)
	switch {
	case end.Code != CodeOK:
		return nil, fmt.Errorf("GET %s: %s: %s", path, end.Code, end.Message)
	case got.status == http.StatusNotFound, got.status == http.StatusNotImplemented:
		return nil, fmt.Errorf("GET %s: status %d: %w", path, got.status, errNotThere)
	case got.status != http.StatusOK:
		return nil, fmt.Errorf("GET %s: status %d", path, got.status)
	}
	return got.body, nil
}

// document is an Answer that keeps a small body.
type document struct {
	status int
	body   []byte
}

var errTooLong = errors.New("the answer is too long")

func (d *document) Head(status int, _ http.Header) error { d.status = status; return nil }

func (d *document) Data(p []byte) error {
	if len(d.body)+len(p) > glanceBytesMax {
		return errTooLong
	}
	d.body = append(d.body, p...)
	return nil
}

// wordMax bounds a word, modelsMax their number, so that a backend can't fill a frame.
const (
	wordMax   = 200
	modelsMax = 200
)

func (g *Glance) word(name, value string) {
	if value != "" {
		g.Words[name] = value[:min(len(value), wordMax)]
	}
}

func (g *Glance) model(id string) {
	if id != "" && len(g.Models) < modelsMax {
		g.Models = append(g.Models, id[:min(len(id), wordMax)])
	}
}

func readVersion(g *Glance, body []byte) error {
	var v struct {
		Version string `json:"version"`
	}
	err := json.Unmarshal(body, &v)
	g.word("version", v.Version)
	return err
}

// readModels reads a list of models in OpenAI's shape.
func readModels(g *Glance, body []byte) error {
	var l struct {
		Data []struct {
			ID       string  `json:"id"`
			MaxModel float64 `json:"max_model_len"` // of vLLM
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &l); err != nil {
		return err
	}
	for _, m := range l.Data {
		g.model(m.ID)
		if m.MaxModel > 0 {
			g.Numbers["context_tokens"] = max(g.Numbers["context_tokens"], m.MaxModel)
		}
	}
	return nil
}

func readProps(g *Glance, body []byte) error {
	var p struct {
		Slots    float64         `json:"total_slots"`
		Alias    string          `json:"model_alias"`
		Path     string          `json:"model_path"`
		Build    json.RawMessage `json:"build_info"`
		Sleeping *bool           `json:"is_sleeping"`
		Defaults struct {
			Context float64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	g.Numbers["slots"], g.Numbers["context_tokens"] = p.Slots, p.Defaults.Context
	if p.Alias == "" {
		p.Alias = p.Path
	}
	g.model(p.Alias)
	if build, err := strconv.Unquote(string(p.Build)); err == nil {
		g.word("version", build)
	}
	if p.Sleeping != nil {
		g.word("sleeping", strconv.FormatBool(*p.Sleeping))
	}
	return nil
}

func readSlots(g *Glance, body []byte) error {
	var slots []struct {
		Busy bool `json:"is_processing"`
	}
	if err := json.Unmarshal(body, &slots); err != nil {
		return err
	}
	g.Numbers["slots"], g.Numbers["running"] = float64(len(slots)), 0
	for _, s := range slots {
		if s.Busy {
			g.Numbers["running"]++
		}
	}
	return nil
}

// readPS reads what Ollama has in memory.
func readPS(g *Glance, body []byte) error {
	var l struct {
		Models []struct {
			Name    string  `json:"name"`
			VRAM    float64 `json:"size_vram"`
			Context float64 `json:"context_length"`
		} `json:"models"`
	}
	if err := json.Unmarshal(body, &l); err != nil {
		return err
	}
	for _, m := range l.Models {
		g.model(m.Name)
		g.Numbers["memory_bytes"] += m.VRAM
		if m.Context > 0 {
			g.Numbers["context_tokens"] = max(g.Numbers["context_tokens"], m.Context)
		}
	}
	return nil
}

func readLemonade(g *Glance, body []byte) error {
	var h struct {
		Status  string `json:"status"`
		Version string `json:"version"`
		Loaded  []struct {
			Model string `json:"model_name"`
		} `json:"all_models_loaded"`
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return err
	}
	g.word("status", h.Status)
	g.word("version", h.Version)
	for _, m := range h.Loaded {
		g.model(m.Model)
	}
	return nil
}

func readLMStudio(g *Glance, body []byte) error {
	var l struct {
		Data []struct {
			ID      string  `json:"id"`
			State   string  `json:"state"`
			Context float64 `json:"loaded_context_length"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &l); err != nil {
		return err
	}
	g.Numbers["models_known"] = float64(len(l.Data))
	for _, m := range l.Data {
		if m.State != "loaded" {
			continue
		}
		g.model(m.ID)
		g.Numbers["context_tokens"] = max(g.Numbers["context_tokens"], m.Context)
	}
	return nil
}
