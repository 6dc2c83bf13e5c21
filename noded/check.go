package noded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"iop/noded/adapter"
	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

// CheckReport is what Check found. Its JSON is stable.
type CheckReport struct {
	Node      string          `json:"node"`
	Version   string          `json:"version"`
	Platform  string          `json:"platform"`
	Commands  []string        `json:"commands"` // programs that may be started; null: any
	OK        bool            `json:"ok"`       // every edge would take the node, and every provider's backend answers
	Edges     []EdgeCheck     `json:"edges"`
	Providers []ProviderCheck `json:"providers"` // as the edge with the newest configuration has them
}

// EdgeCheck is what became of the question to one edge.
type EdgeCheck struct {
	Address   string `json:"address"`
	OK        bool   `json:"ok"`
	Edge      string `json:"edge,omitempty"` // its id
	Cluster   string `json:"cluster,omitempty"`
	Version   string `json:"version,omitempty"`
	Protocol  uint32 `json:"protocol,omitempty"` // that both would speak
	Revision  uint64 `json:"revision,omitempty"` // of the configuration
	Connected bool   `json:"connected"`          // a noded of this name is linked to it now
	SkewMS    int64  `json:"skew_ms"`            // how far its clock is ahead; nothing depends on it
	Failure
	payload *nodepb.NodeConfigPayload
}

// ProviderCheck is whether one provider's backend answers.
type ProviderCheck struct {
	Provider string `json:"provider"`
	Type     string `json:"type"`
	Adapter  string `json:"adapter"`
	At       string `json:"at,omitempty"` // base URL or program
	OK       bool   `json:"ok"`
	TookMS   int64  `json:"took_ms"`
	Failure
}

// Failure is what was wrong and what to do about it; both are empty if nothing was.
type Failure struct {
	Code  string `json:"code,omitempty"` // unreachable, dns, tls, no_answer, backend, or what the edge refused with
	Cause string `json:"cause,omitempty"`
	Cure  string `json:"cure,omitempty"`
}

// checkProbeWait bounds the probe of one backend.
const checkProbeWait = 5 * time.Second

// Check asks every edge of the file whether it would take this node, and every backend whether it answers. It changes
// nothing anywhere: a noded of the same name that is running is not disturbed. Call it instead of Run.
func (d *Daemon) Check(ctx context.Context) *CheckReport {
	r := &CheckReport{
		Node: d.config.ID, Version: d.version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Commands: d.hands.build.commands,
		Edges: make([]EdgeCheck, len(d.edges.file)), Providers: []ProviderCheck{},
	}
	var asking sync.WaitGroup
	for i, l := range d.edges.file {
		asking.Go(func() { r.Edges[i] = checkEdge(ctx, d.config.Edges[i], l) })
	}
	asking.Wait()
	r.Providers = append(r.Providers, d.checkProviders(ctx, newest(r.Edges))...)
	r.OK = true
	for _, e := range r.Edges {
		r.OK = r.OK && e.OK
	}
	for _, p := range r.Providers {
		r.OK = r.OK && p.OK
	}
	return r
}

func checkEdge(ctx context.Context, address string, l *edgelink.Link) EdgeCheck {
	e := EdgeCheck{Address: address}
	c, err := l.Check(ctx)
	switch {
	case err != nil:
		e.Failure = unreachable(address, err)
	case c.Old:
		e.Failure = Failure{
			Code: "old_edge", Cause: "the edge is too old to be asked without registering",
			Cure: "update edged; or start noded, which tells in its log what the edge refuses",
		}
	case c.Refused != nil:
		e.Failure = Failure{Code: c.Refused.Code, Cause: c.Refused.Message, Cure: c.Refused.Cure}
	default:
		k := c.Checked
		e.OK, e.Edge, e.Cluster, e.Version, e.Revision = true, k.Edge, k.Cluster, k.Version, k.Revision
		e.Protocol = min(k.ProtocolMax, nodepb.ProtocolMax)
		e.Connected, e.SkewMS = k.Connected, c.Skew(time.Now()).Milliseconds()
		e.payload = k.Payload
	}
	return e
}

// unreachable says at which step an edge could not be reached, and what helps.
func unreachable(address string, err error) Failure {
	f := Failure{Code: "unreachable", Cause: err.Error()}
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &dns):
		f.Code, f.Cure = "dns", "correct the host in node.edges, or the name service of this machine"
	case errors.As(err, &record):
		f.Code, f.Cure = "tls", "the edge does not speak TLS there: set edge.tls, or node.tls.enabled: false; or the port is not the node listener's"
	case errors.As(err, &unknown):
		f.Code, f.Cure = "tls", "set node.tls.ca to the file of the authority that signed the edge's certificate"
	case errors.As(err, &host):
		f.Code, f.Cure = "tls", "set node.tls.server_name to a name that stands in the edge's certificate"
	case strings.Contains(f.Cause, "TLS with edge"), strings.Contains(f.Cause, "tls: "): // a refused certificate shows in the first read
		f.Code, f.Cure = "tls", "compare node.tls with edge.tls; a client certificate may be wanted (node.tls.cert, node.tls.key)"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Cure = "start edged there, or correct the port: its ready line shows the node listener as node=HOST:PORT"
	case strings.Contains(f.Cause, "dial edge"):
		f.Cure = "is " + hostOf(address) + " up, and is there a firewall between?"
	default:
		f.Code = "no_answer"
		f.Cure = "something listens there, and does not answer like an edge: is it the node listener (node= in edged's ready line), and TLS set alike on both sides?"
	}
	return f
}

// newest is the payload of the newest configuration that an edge told; nil if none did.
func newest(edges []EdgeCheck) *nodepb.NodeConfigPayload {
	var p *nodepb.NodeConfigPayload
	var revision uint64
	for _, e := range edges {
		if e.OK && (p == nil || e.Revision > revision) {
			p, revision = e.payload, e.Revision
		}
	}
	return p
}

// checkProviders builds what the payload says and asks each provider's backend, all at the same time.
func (d *Daemon) checkProviders(ctx context.Context, p *nodepb.NodeConfigPayload) []ProviderCheck {
	list := make([]ProviderCheck, len(p.GetProviders()))
	if err := checkPayload(p); err != nil {
		return []ProviderCheck{{Failure: Failure{Code: "malformed", Cause: err.Error(), Cure: "correct the node's adapters and providers in the edge file"}}}
	}
	reg, err := emptyRegistry().next(d.hands.build, 0, p)
	if err != nil {
		return []ProviderCheck{{Failure: Failure{Code: "malformed", Cause: err.Error(), Cure: "correct the node's adapters and providers in the edge file"}}}
	}
	defer reg.leave()
	var asking sync.WaitGroup
	for i, c := range p.GetProviders() {
		asking.Go(func() { list[i] = checkProvider(ctx, c, reg.watches[c.GetId()]) })
	}
	asking.Wait()
	return list
}

func checkProvider(ctx context.Context, c *nodepb.ProviderConfig, w *watch) ProviderCheck {
	a := w.station.plan.config
	out := ProviderCheck{Provider: c.GetId(), Type: c.GetType(), Adapter: c.GetAdapter(), At: a.GetBaseUrl()}
	if command := a.GetCommand(); out.At == "" && len(command) > 0 {
		out.At = command[0]
	}
	ctx, cancel := context.WithTimeout(ctx, checkProbeWait)
	defer cancel()
	path := w.path()
	if w.check == nil {
		path = adapter.KindOf(c.GetType()).Health
	}
	began := time.Now()
	err := w.station.Probe(ctx, path)
	out.OK, out.TookMS = err == nil, time.Since(began).Milliseconds()
	if err != nil {
		out.Failure = Failure{Code: "backend", Cause: err.Error(), Cure: backendCure(w, err)}
	}
	return out
}

func backendCure(w *watch, err error) string {
	if _, broken := w.station.Adapter.(brokenAdapter); broken {
		return "correct the adapter in the edge file, or what it needs on this machine"
	}
	switch text := err.Error(); {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start the backend, or correct base_url of the adapter: it is reached from this machine"
	case strings.Contains(text, "status 401"), strings.Contains(text, "status 403"):
		return "the backend wants a key: name it in api_key_env of the adapter, and give it under env: in the node file"
	case strings.Contains(text, "status 404"):
		return "correct base_url of the adapter (up to and with /v1), or health_check.path of the provider"
	case strings.Contains(text, "status 503"):
		return "it is loading its model, or overloaded: ask again in a moment"
	}
	return "see the backend's own log; base_url of the adapter is reached from this machine"
}
