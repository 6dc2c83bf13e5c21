package configs

import "time"

// Ollama says how the models of an ollama adapter are run.
type Ollama struct {
	NumCtx    int64       `json:"num_ctx,omitempty" min:"64" max:"1000000000" doc:"Context that models are loaded with, in tokens. Absent: the provider's context_window_tokens, and without one Ollama's own. A longer prompt is refused, never cut."`
	KeepAlive string      `json:"keep_alive,omitempty" doc:"How long a model stays loaded after a request, such as \"10m\"; \"0\" unloads it at once, \"-1\" keeps it. Absent: Ollama's own, five minutes."`
	Think     OllamaThink `json:"think,omitempty" enum:"on,off,low,medium,high" doc:"Whether models think where a request does not say (reasoning_effort). A level is for models that know levels. Absent: as the model does by itself."`
}

// OllamaThink is whether, and how much, a model thinks.
type OllamaThink string

// check refuses what Ollama would.
func (o *Ollama) check(r *report, at string) {
	path := at + ".keep_alive"
	if o.KeepAlive == "" || o.KeepAlive == "0" || o.KeepAlive == "-1" || r.failed(path) {
		return
	}
	if _, err := time.ParseDuration(o.KeepAlive); err != nil {
		r.problem(path, shorten(o.KeepAlive)+" is not a duration", `write a number with its unit, for example "10m", or "0" or "-1"`)
	}
}
