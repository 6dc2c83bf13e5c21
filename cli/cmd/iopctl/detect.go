package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"iop/configs"
)

// Bounds of a look at a local port.
const (
	detectWait      = time.Second
	detectBodyMax   = 1 << 20
	detectModelsMax = 64
)

// place is a port where a backend usually listens.
type place struct {
	port int
	id   string
	kind configs.ProviderType // if its models don't tell
	name string               // for people
}

// places are those of this machine, without our own ports.
func places(taken ...int) []place {
	all := []place{
		{11434, "ollama", configs.ProviderOllama, "Ollama"},
		{8080, "local-8080", configs.ProviderOpenAI, "OpenAI-compatible server"},
		{8081, "local-8081", configs.ProviderOpenAI, "OpenAI-compatible server"},
		{8000, "local-8000", configs.ProviderOpenAI, "OpenAI-compatible server"},
		{1234, "lmstudio", "lmstudio", "LM Studio"},
	}
	var out []place
	for _, p := range all {
		ours := false
		for _, port := range taken {
			ours = ours || p.port == port
		}
		if !ours {
			out = append(out, p)
		}
	}
	return out
}

// found is a backend that answered.
type found struct {
	place
	url    string // up to and with /v1
	models []string
}

// detect asks all places at once and returns those that answer as an OpenAI-compatible server with models, in their order.
func detect(ctx context.Context, places []place) []found {
	ctx, cancel := context.WithTimeout(ctx, detectWait)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true} // no proxy: these are ports of this machine
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answers := make([]*found, len(places))
	var asking sync.WaitGroup
	for i, p := range places {
		asking.Go(func() { answers[i] = look(ctx, client, p) })
	}
	asking.Wait()
	var out []found
	for _, f := range answers {
		if f != nil {
			out = append(out, *f)
		}
	}
	return out
}

// modelList is what GET /v1/models answers.
type modelList struct {
	Data []struct {
		ID      string `json:"id"`
		OwnedBy string `json:"owned_by"`
	} `json:"data"`
}

// look asks one place; nil = nothing there that we could use.
func look(ctx context.Context, client *http.Client, p place) *found {
	f := &found{place: p, url: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) + "/v1"}
	list, err := fetchModels(ctx, client, f.url+"/models")
	if err != nil {
		return nil
	}
	for _, m := range list.Data {
		switch m.OwnedBy {
		case "llamacpp":
			f.kind, f.name = "llamacpp", "llama.cpp"
		case "vllm":
			f.kind, f.name = "vllm", "vLLM"
		}
		if usable(m.ID) && len(f.models) < detectModelsMax {
			f.models = append(f.models, m.ID)
		}
	}
	if len(f.models) == 0 {
		return nil
	}
	return f
}

func fetchModels(ctx context.Context, client *http.Client, url string) (list modelList, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return list, fmt.Errorf("ask %s: %w", url, err)
	}
	res, err := client.Do(req)
	if err != nil {
		return list, fmt.Errorf("ask %s: %w", url, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return list, fmt.Errorf("ask %s: %s", url, res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, detectBodyMax)).Decode(&list); err != nil {
		return list, fmt.Errorf("read %s: %w", url, err)
	}
	return list, nil
}

// usable tells whether a name can stand in our configuration beside the demo's.
func usable(model string) bool {
	if model == "" || model == demoModel || len(model) > configs.ModelIDMax || strings.Contains(model, "${") {
		return false
	}
	for _, r := range model {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return true
}
