package noded

import (
	"fmt"
	"strconv"

	"iop/noded/adapter"
	"iop/noded/adapter/ollama"
)

// makeOllama builds the adapter for Ollama's own API. The settings are those of the edge file; others are of a newer edge.
func makeOllama(p stationPlan) (adapter.Adapter, error) {
	settings := p.config.GetSettings()
	c := ollama.Config{
		BaseURL:   p.config.GetBaseUrl(),
		APIKey:    p.key,
		KeepAlive: settings["keep_alive"],
		Think:     ollama.Think(settings["think"]),
	}
	if text := settings["num_ctx"]; text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("setting num_ctx: %q is not a number from 1", text)
		}
		c.NumCtx = n
	}
	a, err := ollama.New(c)
	if err != nil {
		return nil, err
	}
	return a, nil
}
