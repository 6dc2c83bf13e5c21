package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"iop/edged/admin"
	"iop/edged/adminapi"
	"iop/fsm"
)

// watchFeed follows a feed with the client and gives its frames.
func watchFeed(ctx context.Context, t *testing.T, o adminapi.ClientOptions) (frames <-chan *adminapi.Frame, ended <-chan error) {
	t.Helper()
	c, err := adminapi.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	out, end := make(chan *adminapi.Frame), make(chan error, 1)
	go func() {
		defer close(out)
		end <- c.Live(ctx, 250*time.Millisecond, func(f *adminapi.Frame) error {
			select {
			case out <- f:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return out, end
}

// A viewer sees the whole, then only what changes.
func TestLiveShowsWhatChanges(t *testing.T) {
	w := busy(t)
	s := serve(t, w, func(o *admin.Options) { o.Program = "v9" })
	ctx, leave := context.WithCancel(t.Context())
	frames, ended := watchFeed(ctx, t, adminapi.ClientOptions{Addresses: []string{s.URL}})
	f := <-frames
	var p adminapi.Picture
	if err := p.Apply(f); err != nil {
		t.Fatal(err)
	}
	if !f.Whole || f.Edge != "edge-1" || f.Version != "v9" || f.Role != "leader" || f.Revision != 1 || f.Queue.Pending != 2 || f.Queue.Max != 16 ||
		f.Actions != adminapi.ActionsAllowed || len(f.Providers) != 3 || len(f.Nodes) != 2 || len(f.Leases) != 3 || len(f.Waiters) != 2 {
		t.Errorf("whole %+v", f)
	}
	if l := f.Leases[0]; l.ID != 1 || l.Provider != "mac" || l.Class != "long" || l.GrantedAtMS != epoch.Add(time.Second).UnixMilli() {
		t.Errorf("lease %+v", l)
	}
	x := p.Waiters()[0]
	if x.Request != "r-4" || x.WaitsFor != "mac is full" || x.DeadlineAtMS-x.EnqueuedAtMS != 30_000 || x.EnqueuedAtMS != epoch.Add(3500*time.Millisecond).UnixMilli() {
		t.Errorf("waiter %+v", x)
	}
	if got := p.Waiters()[1].WaitsFor; got != "gpu is offline, mac is full" {
		t.Errorf("waits for %q", got)
	}
	w.do(2, &fsm.Release{Lease: 2, Reason: fsm.ReasonDone}) // r/5 gets the slot: r-4 is long
	for len(p.Waiters()) != 1 {
		f = <-frames
		if err := p.Apply(f); err != nil {
			t.Fatal(err)
		}
	}
	if f.Whole || len(f.Nodes) != 0 || len(f.Leases) != 1 || !slices.Equal(f.LeasesGone, []uint64{2}) || len(f.WaitersGone) != 1 || len(f.Providers) > 2 {
		t.Errorf("change %+v", f)
	}
	f = <-frames
	if f.Whole || len(f.Providers)+len(f.Nodes)+len(f.Leases)+len(f.Waiters) != 0 {
		t.Errorf("nothing has changed: %+v", f)
	}
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	for range frames {
	}
}

// Whatever happens, what a viewer adds up is what a newcomer is told.
func TestLivePictureIsTheWhole(t *testing.T) {
	w := busy(t)
	feed := admin.NewFeed(admin.Options{Source: w, Edge: "edge-1", Pulse: heartbeat()}, time.Second)
	now := time.Unix(1_800_000_000, 0)
	var p adminapi.Picture
	seen := uint64(0)
	look := func() {
		now = now.Add(time.Second)
		events, seq, err := feed.Next(seen, now)
		if err != nil {
			t.Fatal(err)
		}
		seen = seq
		for _, e := range events {
			if err := p.Apply(frameOf(t, e)); err != nil {
				t.Fatal(err)
			}
		}
	}
	look()
	s, generation := fsm.SessionID(2), fsm.Generation(1)
	for step := range 60 {
		switch step % 6 {
		case 0:
			w.do(s, &fsm.Admit{Request: fsm.RequestID(fmt.Sprint("x-", step)), Model: "both", Needs: fsm.NeedChat})
		case 1:
			w.do(s, &fsm.Release{Lease: fsm.LeaseID(step / 3), Reason: fsm.ReasonDone})
		case 2:
			w.do(0, &fsm.Evict{Request: fsm.RequestID(fmt.Sprint("x-", step-14))})
		case 3:
			w.do(0, &fsm.Drain{Node: "studio", Provider: "mac", On: step%12 == 3})
		case 4:
			w.now += fsm.Second
		case 5:
			if step == 29 {
				w.do(s, &fsm.LinkLost{Node: "studio", Generation: generation, Reason: fsm.ReasonHeartbeat})
				generation = w.link(s, "studio")
			}
		}
		look()
		events, _, err := feed.Next(0, now) // a newcomer at the same tick
		if err != nil || len(events) != 1 || !strings.HasPrefix(events[0], "event: whole\n") {
			t.Fatalf("%d events, %v", len(events), err)
		}
		var fresh adminapi.Picture
		if err := fresh.Apply(frameOf(t, events[0])); err != nil {
			t.Fatal(err)
		}
		want, got := pictured(t, &fresh), pictured(t, &p)
		if want != got {
			t.Fatalf("step %d:\n got %s\nwant %s", step, got, want)
		}
	}
	if n := len(p.Seconds()); n != 61 {
		t.Errorf("%d samples of the pulse, want one for each look", n)
	}
	if feed.Leave() {
		t.Error("nobody looks, and something is kept")
	}
}

func pictured(t *testing.T, p *adminapi.Picture) string {
	t.Helper()
	p.Head.Whole = false
	b, err := json.Marshal([]any{p.Head, p.Providers(), p.Nodes(), p.Leases(), p.Waiters(), p.Members, p.Seconds()})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// heartbeat has one sample more each time that somebody asks for the newest.
func heartbeat() func(after, until uint64) ([]adminapi.Sample, uint64) {
	newest := uint64(0)
	return func(after, until uint64) (list []adminapi.Sample, _ uint64) {
		if until == 0 {
			newest++
			until = newest
		}
		for n := after + 1; n <= until; n++ {
			list = append(list, adminapi.Sample{AtMS: int64(n), StepMS: 1000})
		}
		return list, newest
	}
}

func frameOf(t *testing.T, event string) *adminapi.Frame {
	t.Helper()
	lines := strings.Split(event, "\n")
	if len(lines) != 5 || lines[3] != "" || lines[4] != "" {
		t.Fatalf("event %q", event)
	}
	var f adminapi.Frame
	if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[2], "data: ")), &f); err != nil {
		t.Fatalf("%v in %q", err, event)
	}
	if lines[1] != fmt.Sprint("id: ", f.Seq) || f.Whole != (lines[0] == "event: whole") || f.Actions != "allowed" {
		t.Fatalf("event %q", event)
	}
	return &f
}

// A viewer that is a little behind gets what it missed, one that is far behind a whole; nobody computes for it again.
func TestViewerThatIsBehind(t *testing.T) {
	looks := &counting{world: busy(t)}
	feed := admin.NewFeed(admin.Options{Source: looks, Edge: "edge-1"}, time.Second)
	now := time.Unix(1_800_000_000, 0)
	if _, seq, _ := feed.Next(0, now); seq != 1 {
		t.Fatalf("seq %d", seq)
	}
	for i := range 8 {
		now = now.Add(time.Second)
		if _, seq, _ := feed.Next(uint64(i)+1, now); seq != uint64(i)+2 {
			t.Fatalf("seq %d", seq)
		}
	}
	before := looks.n.Load()
	kind := func(seen uint64) string {
		events, seq, err := feed.Next(seen, now)
		if err != nil || seq != 9 {
			t.Fatalf("%d, %v", seq, err)
		}
		names := ""
		for _, e := range events {
			names += e[len("event: ") : len("event: ")+1]
		}
		return names
	}
	for seen, want := range map[uint64]string{9: "", 8: "c", 6: "ccc", 1: "cccccccc", 0: "w", 77: "w"} {
		if got := kind(seen); got != want {
			t.Errorf("who has all up to %d gets %q, want %q", seen, got, want)
		}
	}
	now = now.Add(time.Second)
	_, _, _ = feed.Next(9, now)
	if events, _, _ := feed.Next(1, now); len(events) != 1 || !strings.HasPrefix(events[0], "event: whole") {
		t.Errorf("who is nine behind gets %d events", len(events))
	}
	if n := looks.n.Load() - before; n != 1 {
		t.Errorf("the machine was looked at %d times in one tick", n)
	}
	if feed.Leave() {
		t.Error("nobody looks, and something is kept")
	}
}

// counting counts the looks at the machine.
type counting struct {
	*world
	n atomic.Int64
}

func (c *counting) View(fn func(*fsm.Machine)) {
	c.n.Add(1)
	c.world.View(fn)
}

// A viewer that reads nothing holds nobody up, and nothing is computed for nobody.
func TestViewerThatDoesNotRead(t *testing.T) {
	looks := &counting{world: busy(t)}
	stopping := make(chan struct{})
	s := serve(t, looks.world, func(o *admin.Options) { o.Source, o.Stopping = looks, stopping })
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.(*net.TCPConn).SetReadBuffer(1024); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(conn, "GET /live?every=250 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
	frames, ended := watchFeed(t.Context(), t, adminapi.ClientOptions{Addresses: []string{s.URL}})
	var p adminapi.Picture
	for range 5 {
		if err := p.Apply(<-frames); err != nil {
			t.Fatal(err)
		}
	}
	close(stopping)
	for range frames {
	}
	if err := <-ended; !errors.Is(err, adminapi.ErrBye) {
		t.Errorf("the edge stops, and the viewer is told %v", err)
	}
	text, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(text), "event: bye\n") {
		t.Errorf("%v, %.200s", err, text)
	}
}

// What can't be had is refused with its cure.
func TestLiveRefusals(t *testing.T) {
	s := serve(t, busy(t), nil)
	for _, every := range []string{"0", "249", "10001", "-1", "x", "1e3"} {
		if status, e := ask(t, s.Client(), newRequest(t, "GET", s.URL+"/live?every="+every)); status != 400 || e.Code != "bad_request" {
			t.Errorf("every %s: %d %+v", every, status, e)
		}
	}
	old := serve(t, busy(t), nil)
	old.Config.Handler = http.NotFoundHandler()
	c, err := adminapi.NewClient(adminapi.ClientOptions{Addresses: []string{s.URL + "/older"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var e *adminapi.Error
	if err := c.Live(t.Context(), 0, nil); !errors.As(err, &e) || e.Code != "no_live" || e.Cure == "" {
		t.Errorf("an edge without a feed: %v", err)
	}
}

// More viewers than there are places for are sent away, and a place that is left is free.
func TestLiveViewersAreBounded(t *testing.T) {
	stopping := make(chan struct{})
	s := serve(t, busy(t), func(o *admin.Options) { o.Stopping = stopping })
	var open []io.Closer
	for range admin.ViewersMax() {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		_, _ = fmt.Fprintf(conn, "GET /live?every=10000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if status, e := ask(t, s.Client(), newRequest(t, "GET", s.URL+"/live")); status != 503 || e.Code != "busy" {
		t.Errorf("one too many: %d %+v", status, e)
	}
	close(stopping)
	for _, c := range open {
		_ = c.Close()
	}
}

// gradual is a cluster whose members answer when they are let.
type gradual struct {
	replicas
	asked  chan struct{}
	answer chan struct{}
}

func (g *gradual) Show(ctx context.Context) (*adminapi.Cluster, error) {
	select {
	case g.asked <- struct{}{}:
	default:
	}
	select {
	case <-g.answer:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	at, lag := uint64(7), uint64(2)
	return &adminapi.Cluster{Leader: "edge-1", Members: []adminapi.ClusterMember{
		{ID: "edge-1", Address: "a:1", Voter: true, Role: "leader", AppliedIndex: &at, Lag: new(uint64), Version: "v1"},
		{ID: "edge-2", Address: "b:1", Role: "follower", AppliedIndex: &at, Lag: &lag, Version: "v1"},
		{ID: "edge-3", Address: "c:1", Voter: true, Error: "refused"},
	}}, nil
}

// No frame waits for the members: they come when they have answered.
func TestLiveMembersComeLater(t *testing.T) {
	g := &gradual{asked: make(chan struct{}, 1), answer: make(chan struct{})}
	s := serve(t, busy(t), func(o *admin.Options) { o.Cluster = g })
	ctx, leave := context.WithCancel(t.Context())
	frames, ended := watchFeed(ctx, t, adminapi.ClientOptions{Addresses: []string{s.URL}})
	var p adminapi.Picture
	for range 3 {
		if err := p.Apply(<-frames); err != nil {
			t.Fatal(err)
		}
	}
	if <-g.asked; len(p.Members) != 0 {
		t.Errorf("members %+v", p.Members)
	}
	close(g.answer)
	for len(p.Members) == 0 {
		if err := p.Apply(<-frames); err != nil {
			t.Fatal(err)
		}
	}
	want := []adminapi.LiveMember{
		{ID: "edge-1", Address: "a:1", Suffrage: "voter", Leader: true, Reachable: true, Role: "leader", Applied: 7, Version: "v1"},
		{ID: "edge-2", Address: "b:1", Suffrage: "learner", Reachable: true, Role: "follower", Applied: 7, Lag: 2, Version: "v1"},
		{ID: "edge-3", Address: "c:1", Suffrage: "voter"},
	}
	if !slices.Equal(p.Members, want) {
		t.Errorf("members %+v", p.Members)
	}
	leave()
	for range frames {
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}
