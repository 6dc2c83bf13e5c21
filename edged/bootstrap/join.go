package bootstrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// joinBytesMax bounds the body of a join.
const joinBytesMax = 4 << 10

// joinRequest is what a new machine sends. It keeps its token; the edge only sees the hash.
type joinRequest struct {
	JoinToken       string `json:"join_token"`
	NodeTokenSHA256 string `json:"node_token_sha256"`
}

// Welcome is what a new node is told.
type Welcome struct {
	Node  string   `json:"node"`
	Edges []string `json:"edges"` // addresses that it dials, host:port; not empty
	TLS   bool     `json:"tls"`   // it speaks TLS to them
	CA    string   `json:"ca"`    // PEM of the authority that it has to trust; "" = those of its system
	// Plaintext: the edges are reached without TLS beyond loopback, and that is accepted.
	Plaintext bool `json:"plaintext"`
	// ClientCert: the edges ask nodes for a certificate, which joining does not give.
	ClientCert bool `json:"client_cert"`
}

// Refusal is why a machine may not join.
type Refusal struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Cure    string `json:"cure"`
	after   time.Duration
}

func (r *Refusal) Error() string { return r.Message + "; " + r.Cure }

// Codes of refusals. ErrUnknownToken and ErrExpired are what a Host says.
var (
	ErrUnknownToken = errors.New("unknown join token")
	ErrExpired      = errors.New("expired join token")
)

// join lets a machine in. Tokens are compared by their SHA-256, so the time it takes tells nothing about them.
func (s *Server) join(w http.ResponseWriter, r *http.Request) {
	welcome, err := s.admit(w, r)
	if err == nil {
		s.o.Logger.Info("a machine joined", "node", welcome.Node, "from", r.RemoteAddr)
		writeJSON(w, http.StatusOK, welcome)
		return
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		refusal = &Refusal{
			Status: http.StatusServiceUnavailable, Code: "unavailable", Message: "the edge can't let anybody in at the moment",
			Cure: "try again; the operator finds the cause in the edge's log", after: time.Second,
		}
		s.o.Logger.Error("a join failed", "from", r.RemoteAddr, "error", err)
	} else {
		s.o.Logger.Warn("a join was refused", "from", r.RemoteAddr, "code", refusal.Code)
	}
	if refusal.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((refusal.after+time.Second-1)/time.Second)))
	}
	writeJSON(w, refusal.Status, map[string]*Refusal{"error": refusal})
}

func (s *Server) admit(w http.ResponseWriter, r *http.Request) (*Welcome, error) {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	if r.TLS == nil && !from.Addr().Unmap().IsLoopback() && !s.o.Plaintext {
		return nil, &Refusal{
			Status: http.StatusForbidden, Code: "plaintext", Message: "joining from another machine over plain HTTP would show the join token to the network",
			Cure: "reach the edge through a proxy that speaks TLS, or accept plain text with edge.bootstrap.plaintext: true",
		}
	}
	if after, ok := s.joins.allow(from.Addr(), time.Now()); !ok {
		return nil, &Refusal{
			Status: http.StatusTooManyRequests, Code: "rate_limited", Message: "too many tries from this address",
			Cure: "wait as long as Retry-After says", after: after,
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, joinBytesMax))
	var q joinRequest
	if err != nil || json.Unmarshal(body, &q) != nil {
		return nil, malformed("the body is not {\"join_token\": …, \"node_token_sha256\": …}")
	}
	hash, err := hex.DecodeString(q.NodeTokenSHA256)
	if err != nil || len(hash) != sha256.Size || [sha256.Size]byte(hash) == [sha256.Size]byte{} {
		return nil, malformed("node_token_sha256 is not 64 hex digits")
	}
	if q.JoinToken == "" {
		return nil, malformed("there is no join_token")
	}
	return s.redeem(r.Context(), sha256.Sum256([]byte(q.JoinToken)), [sha256.Size]byte(hash))
}

func (s *Server) redeem(ctx context.Context, token, node [sha256.Size]byte) (*Welcome, error) {
	welcome, err := s.o.Host.Redeem(ctx, token, node)
	const cure = "have a new one made: 'iopctl nodes token NODE'"
	switch {
	case errors.Is(err, ErrUnknownToken):
		return nil, &Refusal{Status: http.StatusForbidden, Code: "unknown_token", Message: "this join token is not known, or has been used", Cure: cure}
	case errors.Is(err, ErrExpired):
		return nil, &Refusal{Status: http.StatusForbidden, Code: "expired", Message: "this join token has expired", Cure: cure}
	case err != nil:
		return nil, fmt.Errorf("redeem a join token: %w", err)
	}
	return welcome, nil
}

func malformed(message string) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Code: "malformed", Message: message, Cure: "join with 'noded join'"}
}
