package metrics

import (
	"fmt"
	"strings"
)

// labelBound says what a label can be, and so how many values it has.
type labelBound struct{ name, bound string }

// labelBounds has all labels; nothing changes it.
var labelBounds = [...]labelBound{
	{labelModel, "a model of the configuration, `provider:ID` of an unlimited provider that is addressed directly, or `unknown`"},
	{labelProvider, "a provider of the configuration, or `none`"},
	{labelNode, "a node of the configuration, or one that still holds leases"},
	{labelPrincipal, "a principal of the configuration, or `none`"},
	{labelToken, "a token reference of the configuration, or `none`; never a token"},
	{labelOutcome, "one of the outcomes below"},
	{labelClass, "`normal`, `long`"},
	{labelReason, "a reason of the log's, some fifteen"},
	{labelState, "of links `pending`, `ready`, `fenced`; of sessions `open`, `grace`"},
	{labelEvent, "`registered`, a reason of the log's, or `refused_` and a code of ours"},
	{labelEdge, "an edge that the node is linked to"},
	{labelPeer, "a member of the cluster or of `edge.cluster.peers`"},
	{labelVerdict, "of batches `accepted`, `not_leader`, `overloaded` and the like; of comparisons `same`, `differ`, `unknown`"},
	{labelResult, "of a refresh `applied`, `no_change`, `dry_run`, `invalid`, `conflict`, `restart_required`, `failed`; of a change `done`, `refused`"},
	{labelChange, "the name of a route of the admin listener that changes something"},
	{labelCert, "`edge`, `client_ca`, `cluster_ca`"},
	{labelVersion, "of the running program"},
	{labelGo, "of the running program"},
}

// outcomeWords say what each outcome is; nothing changes it.
var outcomeWords = [outcomes]string{
	"answered below 400, to its end",
	"the backend's own answer was 400 or above",
	"the backend broke, timed out or could not be reached",
	"the client left, or an operator took the request out of the queue",
	"429: the queue is full",
	"429: the limits of the client's principal",
	"waited past its deadline",
	"no provider of the model is live",
	"no such model",
	"too long for every provider of the model",
	"no provider of the model can do it",
	"the request id is in progress elsewhere",
	"bad or missing key",
	"the request could not be understood",
	"over `edge.max_body_bytes`, or too many headers",
	"the client sent its body too slowly",
	"too much waits for the log",
	"the edge has no contact to its cluster",
	"the edge is stopping",
	"the log failed, or something broke in the edge",
}

// Document is docs/METRICS.md.
func Document() string {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Written by "go test ./edged/metrics -update" from edged/metrics/catalog.go; don't edit it here. -->

` + "`GET /metrics`" + ` of the admin listener, in Prometheus' text format or in OpenMetrics, in which the times of requests have the ids
of their traces as exemplars (if [traces](OPERATING.md) are on). How to scrape, alerts and a dashboard: [Watching it](OPERATING.md#watching-it).

What the log decides (queue, providers, leases, nodes, sessions, responses, revision) is the same at every replica: take one of
them, or the maximum, never the sum. What happens at an edge (requests, tokens, its log's times, links' events) is its own: add
it up. Counters begin at 0 with each start of the process.

Beside these there are ` + "`go_…` and `process_…`" + ` of the Go runtime and the operating system.
`)
	room := ""
	for _, d := range Catalog() {
		if d.Room != room {
			room = d.Room
			fmt.Fprintf(&b, "\n## %s\n\n| metric | labels | what it is | if it is odd |\n|---|---|---|---|\n", room)
		}
		fmt.Fprintf(&b, "| `%s` %s | %s | %s | %s |\n", d.Name, d.Type, strings.Join(d.Labels, ", "), d.Help, d.Odd)
	}
	b.WriteString(`
## Labels

No text of a client becomes a label. A name that the configuration drops takes its series with it.

| label | what it can be |
|---|---|
`)
	for _, l := range labelBounds {
		fmt.Fprintf(&b, "| `%s` | %s |\n", l.name, l.bound)
	}
	b.WriteString("\n## Outcomes of requests\n\n| outcome | the request |\n|---|---|\n")
	for o := range outcomes {
		fmt.Fprintf(&b, "| `%s` | %s |\n", o, outcomeWords[o])
	}
	return b.String()
}
