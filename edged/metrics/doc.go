// Package metrics has every name that an edge exports to Prometheus, and the cheap handles that the hot path counts with.
//
// edged makes one Metrics and gives it to its children; GET /metrics of the admin listener is Handler. Counters and
// histograms are fed as things happen. Gauges are read from one State at each scrape, so they agree with each other and
// a provider or node that is gone has no gauge. Label values are ids of the configuration or names of ours, never text
// of a client; a model that the configuration does not have is "unknown". No state of the gateway is decided here.
//
// Where next: names.go (the exported names), metrics.go (what is counted), state.go (what is read at a scrape).
package metrics
