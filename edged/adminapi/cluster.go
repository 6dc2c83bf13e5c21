package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Cluster answers GET /cluster: the members as the edge that answered sees them, each asked just now.
type Cluster struct {
	Cluster      string          `json:"cluster"`       // id
	Edge         string          `json:"edge"`          // that answered
	Leader       string          `json:"leader"`        // edge id; "" = none known
	AppliedIndex uint64          `json:"applied_index"` // of the edge that answered
	Level        uint32          `json:"level"`         // feature level of the state
	Members      []ClusterMember `json:"members"`       // by id
}

// ClusterMember is one replica.
type ClusterMember struct {
	ID           string  `json:"id"`
	Address      string  `json:"address"` // of its cluster listener; "" = it has none
	Voter        bool    `json:"voter"`   // false: it has not caught up yet
	Role         string  `json:"role"`    // by its own word: leader, follower, joining, ...; "" = it does not answer
	AppliedIndex *uint64 `json:"applied_index"`
	Lag          *uint64 `json:"lag"` // entries that it has not applied and the furthest member has; null with role ""
	Version      string  `json:"version"`
	Level        uint32  `json:"level_max"`  // newest feature level that its version knows; 0 with role ""
	ContactMS    *int64  `json:"contact_ms"` // since it was heard of; null = not since the edge that answered started
	Session      uint64  `json:"session"`    // of its edge; 0 = none
	Error        string  `json:"error,omitempty"`
}

// MemberRequest is a replica that is to be taken in (POST /cluster/members).
type MemberRequest struct {
	ID      string `json:"id"`
	Address string `json:"address"` // host:port of its cluster listener, as the others reach it
}

// TransferRequest names the next leader (POST /cluster/transfer).
type TransferRequest struct {
	To string `json:"to"` // edge id; "" = whoever is furthest
}

// Verification answers POST /cluster/verify: the states of all members after one entry of the log.
type Verification struct {
	Index    uint64           `json:"index"`
	Same     bool             `json:"same"` // all that answered
	Replicas []VerifiedMember `json:"replicas"`
}

// VerifiedMember is one replica's part.
type VerifiedMember struct {
	ID     string `json:"id"`
	Digest string `json:"digest"` // SHA-256, in hex; "" = it did not answer
	Error  string `json:"error,omitempty"`
}

// Cluster asks for the members.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	return get[Cluster](ctx, c, "/cluster")
}

// AddMember has a replica taken in. It gets a vote when it has caught up.
func (c *Client) AddMember(ctx context.Context, m MemberRequest) (*Cluster, error) {
	return post[Cluster](ctx, c, "/cluster/members", m)
}

// RemoveMember has a replica taken out.
func (c *Client) RemoveMember(ctx context.Context, id string, force bool) (*Cluster, error) {
	path := "/cluster/members/" + url.PathEscape(id)
	if force {
		path += "?force=true"
	}
	return ask[Cluster](ctx, c, call{method: http.MethodDelete, path: path})
}

// Transfer has leadership handed over.
func (c *Client) Transfer(ctx context.Context, t TransferRequest) (*Cluster, error) {
	return post[Cluster](ctx, c, "/cluster/transfer", t)
}

// Verify compares all replicas.
func (c *Client) Verify(ctx context.Context) (*Verification, error) {
	return ask[Verification](ctx, c, call{method: http.MethodPost, path: "/cluster/verify"})
}

func post[T any](ctx context.Context, c *Client, path string, body any) (*T, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return ask[T](ctx, c, call{method: http.MethodPost, path: path, body: text})
}

// Backup copies a backup of the first edge that answers. What arrived may be cut off without an error: whoever keeps it
// has to verify it.
func (c *Client) Backup(ctx context.Context, to io.Writer) error {
	var failed UnreachableError
	for _, b := range c.bases {
		err := c.backup(ctx, b, to)
		var refusal *Error
		if err == nil || errors.As(err, &refusal) || errors.Is(err, errBegun) {
			return err
		}
		failed.Attempts = append(failed.Attempts, Attempt{Address: b.address, Err: err})
	}
	return &failed
}

// errBegun says that another edge can't be asked any more.
var errBegun = errors.New("the backup broke off")

func (c *Client) backup(ctx context.Context, b base, to io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/cluster/backup", nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", b.address, err)
	}
	c.introduce(req)
	res, err := c.http.Do(req)
	if err != nil {
		return plainCause(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != BackupType {
		return decode(b.address, res, &struct{}{})
	}
	if _, err := io.Copy(to, res.Body); err != nil {
		return fmt.Errorf("%w: %w", errBegun, plainCause(err))
	}
	return nil
}

// BackupType is the content type of a backup.
const BackupType = "application/vnd.iop.backup"
