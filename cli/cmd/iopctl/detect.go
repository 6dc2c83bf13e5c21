package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
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
	url  string               // up to and with /v1; "" = that of the port
}

// places are those of this machine, without our own ports.
func places(taken ...int) []place {
	all := []place{
		{port: 11434, id: "ollama", kind: configs.ProviderOllama, name: "Ollama"},
		{port: 8080, id: "local-8080", kind: configs.ProviderOpenAI, name: anyServer},
		{port: 8081, id: "local-8081", kind: configs.ProviderOpenAI, name: anyServer},
		{port: 8000, id: "local-8000", kind: configs.ProviderOpenAI, name: anyServer},
		{port: 1234, id: "lmstudio", kind: "lmstudio", name: "LM Studio"},
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

const anyServer = "OpenAI-compatible server"

// named looks at the places that were named. One that does not answer is an error: somebody counts on it.
func named(ctx context.Context, urls []string) ([]found, error) {
	list := make([]place, len(urls))
	for i, u := range urls {
		list[i] = place{id: fmt.Sprintf("backend-%d", i+1), kind: configs.ProviderOpenAI, name: anyServer, url: u}
	}
	out := detect(ctx, list)
	for _, p := range list {
		if !slices.ContainsFunc(out, func(f found) bool { return f.id == p.id }) {
			return nil, fault("start it, and see that GET "+p.url+"/models lists models", "no backend with models answers at %s", p.url)
		}
	}
	return out, nil
}

// found is a backend that answered.
type found struct {
	place
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
	f := &found{place: p}
	if f.url == "" {
		f.url = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) + "/v1"
	}
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
		case "library":
			f.kind, f.name = configs.ProviderOllama, "Ollama"
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
