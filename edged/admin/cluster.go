package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"iop/edged/adminapi"
)

// Cluster shows and changes the members. Errors that are no *adminapi.Error are answered 500.
type Cluster interface {
	// Show asks all members how they stand.
	Show(ctx context.Context) (*adminapi.Cluster, error)
	// Add takes a replica in; it gets a vote when it has caught up.
	Add(ctx context.Context, m adminapi.MemberRequest) error
	// Remove takes one out; force: also if the rest has no majority.
	Remove(ctx context.Context, id string, force bool) error
	// Transfer hands leadership over; "" = to whoever is furthest.
	Transfer(ctx context.Context, to string) error
	// Verify compares the states of all members at one index.
	Verify(ctx context.Context) (*adminapi.Verification, error)
	// Backup writes the state that this replica has now.
	Backup(to io.Writer) error
}

// memberBytesMax bounds the body of a change of members.
const memberBytesMax = 4 << 10

func (a *api) clusterRoutes() []route {
	return []route{
		{path: "/cluster", read: a.respond(func(r *http.Request) (any, error) { return a.Cluster.Show(r.Context()) })},
		{path: "/cluster/backup", read: http.HandlerFunc(a.backup), guarded: true},
		{path: "/cluster/members", change: a.respond(a.addMember), method: http.MethodPost, what: "member added"},
		{path: "/cluster/members/{id}", change: a.respond(a.removeMember), method: http.MethodDelete, what: "member removed"},
		{path: "/cluster/transfer", change: a.respond(a.transfer), method: http.MethodPost, what: "leadership handed over"},
		{path: "/cluster/verify", change: a.respond(a.verify), method: http.MethodPost, what: "cluster verify"},
	}
}

// verify leaves a mark in the log and changes nothing else.
func (a *api) verify(r *http.Request) (any, error) {
	harmless(r)
	return a.Cluster.Verify(r.Context())
}

func (a *api) addMember(r *http.Request) (any, error) {
	var m adminapi.MemberRequest
	err := readBody(r, &m)
	if err == nil {
		_, _, err = net.SplitHostPort(m.Address)
	}
	if err != nil || m.ID == "" {
		return nil, badRequest(fmt.Sprintf("the body names no replica: %v", err), `send {"id": "edge-2", "address": "HOST:PORT of its cluster listener"}`)
	}
	if err := a.Cluster.Add(r.Context(), m); err != nil {
		return nil, err
	}
	a.changed(r, "member added", "replica", m.ID, "address", m.Address)
	return a.Cluster.Show(r.Context())
}

func (a *api) removeMember(r *http.Request) (any, error) {
	force := false
	if v := r.URL.Query().Get("force"); v != "" {
		var err error
		if force, err = strconv.ParseBool(v); err != nil {
			return nil, badRequest(fmt.Sprintf("the query has force=%q", v), "it is true or false")
		}
	}
	if err := a.Cluster.Remove(r.Context(), r.PathValue("id"), force); err != nil {
		return nil, err
	}
	a.changed(r, "member removed", "replica", r.PathValue("id"), "force", force)
	return a.Cluster.Show(r.Context())
}

func (a *api) transfer(r *http.Request) (any, error) {
	var t adminapi.TransferRequest
	if err := readBody(r, &t); err != nil && !errors.Is(err, io.EOF) {
		return nil, badRequest("the body is no transfer: "+err.Error(), `send {"to": "edge-2"}, or {} for whoever is furthest`)
	}
	if err := a.Cluster.Transfer(r.Context(), t.To); err != nil {
		return nil, err
	}
	a.changed(r, "leadership handed over", "to", t.To)
	return a.Cluster.Show(r.Context())
}

func readBody(r *http.Request, into any) error {
	body := json.NewDecoder(io.LimitReader(r.Body, memberBytesMax))
	body.DisallowUnknownFields()
	return body.Decode(into)
}

// backup streams. An error after the first byte breaks the connection: what arrived is no whole backup.
func (a *api) backup(w http.ResponseWriter, r *http.Request) {
	a.stand(w.Header())
	w.Header().Set("Content-Type", adminapi.BackupType)
	w.Header().Set("Content-Disposition", `attachment; filename="iop.backup"`)
	if err := a.Cluster.Backup(w); err != nil {
		a.Logger.ErrorContext(r.Context(), "backup", "error", err)
		panic(http.ErrAbortHandler)
	}
}
