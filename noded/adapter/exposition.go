package adapter

import (
	"bufio"
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
)

// gauge is a metric that a glance takes over under a name of ours. Its series (one per engine or model) are added up, or
// the greatest counts.
type gauge struct {
	name     string
	greatest bool
}

var errNoGauge = errors.New("none of the expected metrics is there")

func readVLLM(g *Glance, body []byte) error {
	return readMetrics(g, body, map[string]gauge{
		"vllm:num_requests_running": {name: "running"},
		"vllm:num_requests_waiting": {name: "waiting"},
		"vllm:kv_cache_usage_perc":  {name: "kv_use", greatest: true},
		"vllm:gpu_cache_usage_perc": {name: "kv_use", greatest: true}, // before 0.10
	})
}

// readLlama reads llama-server's metrics, which it has if started with --metrics.
func readLlama(g *Glance, body []byte) error {
	return readMetrics(g, body, map[string]gauge{
		"llamacpp:requests_processing":    {name: "running"},
		"llamacpp:requests_deferred":      {name: "waiting"},
		"llamacpp:kv_cache_usage_ratio":   {name: "kv_use", greatest: true}, // of older ones
		"llamacpp:tokens_predicted_total": {name: "tokens_out"},
		"llamacpp:prompt_tokens_total":    {name: "tokens_in"},
	})
}

// readMetrics takes the wanted series out of a Prometheus text exposition. Lines that it does not understand are none of
// its business.
func readMetrics(g *Glance, body []byte, wanted map[string]gauge) error {
	found := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(body))
	for lines.Scan() {
		name, value, ok := series(lines.Text())
		w, want := wanted[name]
		if !ok || !want {
			continue
		}
		if w.greatest {
			found[w.name] = max(found[w.name], value)
		} else {
			found[w.name] += value
		}
	}
	if len(found) == 0 {
		return errNoGauge
	}
	for name, value := range found {
		g.Numbers[name] = value
	}
	return lines.Err()
}

// series reads a line: name, labels if any, value. A label's value may hold any character, a } as well.
func series(line string) (name string, value float64, ok bool) {
	name, rest, _ := strings.Cut(line, " ")
	if brace := strings.IndexByte(line, '{'); brace >= 0 {
		end := strings.LastIndexByte(line, '}')
		if end < brace {
			return "", 0, false
		}
		name, rest = line[:brace], line[end+1:]
	}
	fields := strings.Fields(rest) // value, and maybe a time
	if name == "" || name[0] == '#' || len(fields) == 0 {
		return "", 0, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	return name, value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}
