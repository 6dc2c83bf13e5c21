package adminapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// NodeRequest is a node that is to be added (POST /nodes?id=…&alias=…&dry_run=true; the body is Fragment).
type NodeRequest struct {
	ID       string // "" = the fragment says it
	Alias    string
	DryRun   bool
	Fragment []byte // the entry of nodes as it would stand in an edge file; empty = a node with nothing but its id
}

// JoinRequest asks for a join token to be taken (POST /nodes/{id}/join). The caller makes the token and keeps it.
type JoinRequest struct {
	Node        string `json:"-"`
	TokenSHA256 string `json:"token_sha256"`
	TTLMS       int64  `json:"ttl_ms"`
}

// JoinOffer tells how a machine becomes the node.
type JoinOffer struct {
	Node      string  `json:"node"`
	TTLMS     int64   `json:"ttl_ms"`
	URL       string  `json:"url"`               // of the openai listener, as new machines reach it
	ShSHA256  string  `json:"install_sh_sha256"` // of URL/bootstrap/install.sh; "" = this edge has no builds of noded
	PSSHA256  string  `json:"install_ps1_sha256"`
	Plaintext bool    `json:"plaintext"` // machines beyond loopback may join over plain HTTP
	Builds    []Build `json:"builds"`
	Problem   string  `json:"problem"` // why there are no builds
}

// Build is a build of noded that an edge serves.
type Build struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size_bytes"`
}

// AddNode adds a node to the configuration. A report whose Result is a refusal is no error.
func (c *Client) AddNode(ctx context.Context, r NodeRequest) (*RefreshReport, error) {
	q := url.Values{"dry_run": {strconv.FormatBool(r.DryRun)}}
	if r.ID != "" {
		q.Set("id", r.ID)
	}
	if r.Alias != "" {
		q.Set("alias", r.Alias)
	}
	return ask[RefreshReport](ctx, c, call{method: http.MethodPost, path: "/nodes?" + q.Encode(), body: r.Fragment})
}

// AddJoin has a join token taken.
func (c *Client) AddJoin(ctx context.Context, r JoinRequest) (*JoinOffer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return ask[JoinOffer](ctx, c, call{method: http.MethodPost, path: "/nodes/" + url.PathEscape(r.Node) + "/join", body: body})
}
