package edged

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"iop/edged/adminapi"
	"iop/edged/bootstrap"
	"iop/fsm"
)

// newcomers lets new machines in: it is bootstrap's Host.
type newcomers struct{ d *Daemon }

// A token that was made through another replica may not have arrived here yet: it is looked for this often.
const (
	joinLooks = 5
	joinPause = 100 * time.Millisecond
)

// awaitJoin tells whether a join token is known here.
func (n newcomers) awaitJoin(ctx context.Context, token fsm.TokenHash) (known bool) {
	for look := range joinLooks {
		if look > 0 {
			select {
			case <-time.After(joinPause):
			case <-ctx.Done():
				return false
			}
		}
		n.d.store.View(func(m *fsm.Machine) { known = m.HasJoin(token) })
		if known {
			return true
		}
	}
	return false
}

// nodeToken gives the hash of the token that a node got by joining.
func (d *Daemon) nodeToken(id fsm.NodeID) (hash fsm.TokenHash, joined bool) {
	d.store.View(func(m *fsm.Machine) { hash, joined = m.NodeToken(id) })
	return hash, joined
}

// newBootstrap makes what answers under /bootstrap/.
func (d *Daemon) newBootstrap() *bootstrap.Server {
	b := &d.self.Bootstrap
	return bootstrap.New(bootstrap.Options{
		Host: newcomers{d}, Dir: b.ArtifactDir, URL: d.publicURL(), Plaintext: b.Plaintext, Logger: d.log,
	})
}

// Redeem uses a join token. What is not known here is refused without a word to the log of the cluster, which nobody
// without a token may fill.
func (n newcomers) Redeem(ctx context.Context, token, nodeToken [32]byte) (*bootstrap.Welcome, error) {
	if !n.awaitJoin(ctx, token) {
		return nil, bootstrap.ErrUnknownToken
	}
	out, err := n.d.store.Do(ctx, &fsm.RedeemJoin{Token: token, NodeToken: nodeToken})
	switch {
	case err != nil:
		return nil, err
	case out.Code == fsm.Joined:
		return n.d.welcome(out.Grant.Node)
	case out.Refusal == fsm.RefusalUnknownToken:
		return nil, bootstrap.ErrUnknownToken
	case out.Refusal == fsm.RefusalExpired:
		return nil, bootstrap.ErrExpired
	}
	return nil, fmt.Errorf("redeem a join token: %s %s", out.Code, out.Refusal)
}

// welcome tells a node whom it dials, and how.
func (d *Daemon) welcome(node fsm.NodeID) (*bootstrap.Welcome, error) {
	w := &bootstrap.Welcome{Node: string(node), TLS: d.self.TLS.Cert != "", ClientCert: d.self.TLS.ClientCA != "", Edges: []string{d.nodeAddress()}}
	d.store.View(func(m *fsm.Machine) {
		for _, s := range m.Snapshot().Sessions {
			if a := m.Address(s.Edge); a != "" && s.Edge != fsm.EdgeID(d.self.ID) {
				w.Edges = append(w.Edges, a)
			}
		}
	})
	if !w.TLS {
		w.Plaintext = d.self.Link.Plaintext
		return w, nil
	}
	var err error
	w.CA, err = privateAuthority(d.self.TLS.Cert, d.self.TLS.ClientCA, d.self.Cluster.CA)
	return w, err
}

// nodeAddress is where nodes dial this edge: as advertised, else the listener's, with this machine's name for all addresses.
func (d *Daemon) nodeAddress() string {
	if a := d.self.Advertise.Node; a != "" {
		return a
	}
	return reachable(d.ports.node.Addr().String(), "")
}

// publicURL is where new machines reach the openai listener.
func (d *Daemon) publicURL() string {
	if u := d.self.Bootstrap.PublicURL; u != "" {
		return strings.TrimRight(u, "/")
	}
	host, _, _ := net.SplitHostPort(d.self.Advertise.Node)
	scheme := "http://"
	if d.self.TLS.OpenAI {
		scheme = "https://"
	}
	return scheme + reachable(d.ports.openai.Addr().String(), host)
}

// reachable puts a host into an address that is open on all: the given one, else this machine's name.
func reachable(address, host string) string {
	at, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(at); at != "" && (ip == nil || !ip.IsUnspecified()) {
		return address
	}
	if host == "" {
		var err error
		if host, err = os.Hostname(); err != nil {
			host = "127.0.0.1"
		}
	}
	return net.JoinHostPort(host, port)
}

// withBootstrap sends new machines to bootstrap and all others to next.
func withBootstrap(b *bootstrap.Server, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, bootstrap.Prefix) {
			b.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// addJoin is POST /nodes/{id}/join: it keeps the hash of a join token that the caller has made.
func (d *Daemon) addJoin(ctx context.Context, q adminapi.JoinRequest) (*adminapi.JoinOffer, error) {
	hash, err := hex.DecodeString(q.TokenSHA256)
	if err != nil || len(hash) != len(fsm.TokenHash{}) {
		return nil, badJoin("token_sha256 is not a SHA-256 in 64 hex digits", "send the hash of the token, never the token")
	}
	out, err := d.store.Do(ctx, &fsm.AddJoin{
		Token: fsm.TokenHash(hash), Node: fsm.NodeID(q.Node), TTL: fsm.Time(q.TTLMS) * fsm.Millisecond,
	})
	switch {
	case err != nil:
		return nil, unavailable(err)
	case out.Code == fsm.Done:
		d.log.Info("a join token was made", "node", q.Node, "ttl_ms", q.TTLMS)
		return d.joinOffer(q), nil
	case out.Refusal == fsm.RefusalUnknownNode:
		return nil, &adminapi.Error{
			Code: "unknown_node", Message: fmt.Sprintf("the configuration has no node %q", q.Node),
			Cure: "add it: iopctl nodes add " + q.Node, Status: http.StatusNotFound,
		}
	case out.Refusal == fsm.RefusalTooMany:
		return nil, &adminapi.Error{
			Code: "too_many", Message: fmt.Sprintf("there are %d join tokens already", fsm.JoinsMax),
			Cure: "wait until some have expired", Status: http.StatusConflict,
		}
	case out.Refusal == fsm.RefusalMalformed:
		return nil, badJoin(fmt.Sprintf("a join token lives between 1 ms and %d h", fsm.JoinTTLMax/(3600*fsm.Second)), "give another --ttl")
	}
	return nil, &adminapi.Error{
		Code: out.Refusal.String(), Message: "the join token was not taken: " + out.Refusal.String(), Cure: "make another one",
		Status: http.StatusConflict,
	}
}

func badJoin(message, cure string) error {
	return &adminapi.Error{Code: "bad_request", Message: message, Cure: cure, Status: http.StatusBadRequest}
}

func (d *Daemon) joinOffer(q adminapi.JoinRequest) *adminapi.JoinOffer {
	o := d.boot.Offer()
	out := &adminapi.JoinOffer{
		Node: q.Node, TTLMS: q.TTLMS, URL: o.URL, ShSHA256: o.Sh, PSSHA256: o.PS, Problem: o.Problem, Plaintext: o.Plaintext,
		Builds: []adminapi.Build{},
	}
	for _, b := range o.Builds {
		out.Builds = append(out.Builds, adminapi.Build(b))
	}
	return out
}
