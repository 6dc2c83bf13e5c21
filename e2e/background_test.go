package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"iop/e2e/backend"
)

// stored is a response as a client gets it.
type stored struct {
	ID     string
	Status string
	Error  *struct{ Code, Message string }
	Output []outputItem
}

func (r *stored) text() string {
	var b strings.Builder
	for _, o := range r.Output {
		for _, c := range o.Content {
			b.WriteString(c.Text)
		}
	}
	return b.String()
}

func (r *stored) over() bool { return r.Status != "queued" && r.Status != "in_progress" }

// slow is a plan that takes a second or two, and the text that it gives.
func slow() (backend.Plan, string) {
	p := backend.Plan{Tokens: 12, Pace: 80 * time.Millisecond}
	text := ""
	for i := range p.Tokens {
		text += fmt.Sprint(" ", i+1)
	}
	return p, text
}

// plainly asks for something and returns status and body; 0 = no answer.
func plainly(method, address, path string, body any) (int, []byte) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil
		}
		in = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, in)
	if err != nil {
		return 0, nil
	}
	res, err := newClient().Do(r)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, nil
	}
	return res.StatusCode, out
}

// background submits a background response and returns it.
func background(t testing.TB, address, input string, more map[string]any) stored {
	t.Helper()
	body := map[string]any{"model": "m", "input": input, "background": true}
	for k, v := range more {
		body[k] = v
	}
	status, b := plainly("POST", address, "/v1/responses", body)
	var r stored
	if status != http.StatusOK || json.Unmarshal(b, &r) != nil || r.ID == "" || r.Status != "queued" {
		t.Fatalf("submit: %d %s", status, b)
	}
	return r
}

// poll returns a response, ok = the edge answered with one.
func poll(address, id string) (r stored, ok bool) {
	status, b := plainly("GET", address, "/v1/responses/"+id, nil)
	return r, status == http.StatusOK && json.Unmarshal(b, &r) == nil
}

// awaitOver waits until a response has ended, asking one of the addresses at a time.
func awaitOver(t testing.TB, id string, addresses ...string) (r stored) {
	t.Helper()
	await(t, id+" has ended", func() bool {
		var ok bool
		r, ok = poll(addresses[rand.IntN(len(addresses))], id)
		return ok && r.over()
	})
	return r
}

// wantCompleted wants that a response was completed, with this text, and that its events are a whole story: numbered
// without a gap from 0, ended once.
func wantCompleted(t testing.TB, address, id, text string) {
	t.Helper()
	r := awaitOver(t, id, address)
	if r.Status != "completed" || r.text() != text {
		t.Errorf("%s is %s (%+v) and says %q, want %q", id, r.Status, r.Error, r.text(), text)
	}
	s := &reader{id: id, from: -1}
	if err := s.read(address, 0); err != nil {
		t.Errorf("%s: events: %v", id, err)
	}
	if n := len(s.types); n == 0 || s.types[n-1] != "response.completed" {
		t.Errorf("%s: its events are %v", id, s.types)
	}
}

// reader follows the events of a response, over breaks and from whichever replica.
type reader struct {
	id    string
	from  int64 // last sequence_number
	types []string
	over  bool
}

// read reads events from one edge until the response has ended, the connection breaks, or so many were read (0 = all).
func (s *reader) read(address string, most int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	path := fmt.Sprintf("http://%s/v1/responses/%s?stream=true&starting_after=%d", address, s.id, s.from)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	res, err := newClient().Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type   string
			Number *int64 `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Number == nil {
			return fmt.Errorf("event %q: %w", data, err)
		}
		if s.over || *e.Number != s.from+1 {
			return fmt.Errorf("%w: event %d comes after %d (over: %v)", errGap, *e.Number, s.from, s.over)
		}
		s.from = *e.Number
		s.types = append(s.types, e.Type)
		s.over = slices.Contains([]string{"response.completed", "response.failed", "response.cancelled", "response.incomplete"}, e.Type)
		if n++; n == most {
			return nil
		}
	}
	if !s.over {
		return errors.Join(errors.New("the stream broke off"), lines.Err())
	}
	return nil
}

var errGap = errors.New("a gap, or an event twice")

// follow reads to the end, at another address after each few events and each break.
func (s *reader) follow(t testing.TB, addresses ...string) {
	end := time.Now().Add(2 * patience)
	for !s.over && time.Now().Before(end) {
		if err := s.read(addresses[rand.IntN(len(addresses))], 1+rand.IntN(6)); errors.Is(err, errGap) {
			t.Errorf("%s: %v", s.id, err)
			return
		}
	}
	if !s.over {
		t.Errorf("%s: its events never end: %v", s.id, s.types)
	}
}

func backgroundLayout(t testing.TB, capacity int) (layout, *backend.Backend, string) {
	plan, text := slow()
	b := newBackend(t, backend.Options{Default: plan})
	return layout{
		throttled: true, queue: 100, heartbeat: 200 * time.Millisecond,
		providers: []provider{{id: "p", url: b.URL(), capacity: capacity}}, models: map[string][]string{"m": {"p"}},
	}, b, text
}

// TestBackgroundOutlivesKills: 20 background responses of one edge; the edge is killed twice, stopped once, and the node is
// killed once, at random moments. All complete, exactly once.
func TestBackgroundOutlivesKills(t *testing.T) {
	t.Parallel()
	l, _, text := backgroundLayout(t, 4)
	w := newWorld(t, l)
	var ids []string
	for i := range 20 {
		ids = append(ids, background(t, w.edge.openai, fmt.Sprint("hello ", i), nil).ID)
	}
	for i := range 3 {
		time.Sleep(time.Duration(rand.IntN(900)) * time.Millisecond) // a random moment of the runs
		if i == 2 {                                                  // an orderly stop cuts off what runs after a while, and is no end for it
			terminate(t, w.edge.process)
			if code := w.edge.code(t); code != 0 {
				t.Errorf("the edge ended with code %d", code)
			}
		} else {
			w.edge.kill()
		}
		w.restartEdge()
		w.awaitLink("n1")
		if i == 1 {
			time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
			w.nodes["n1"].kill()
			w.startNode("n1")
			w.awaitLink("n1")
		}
	}
	for _, id := range ids {
		wantCompleted(t, w.edge.openai, id, text)
	}
	for _, id := range ids { // and stay so
		if r, ok := poll(w.edge.openai, id); !ok || r.Status != "completed" {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

// TestBackgroundInACluster: 20 background responses submitted at three replicas. One replica is killed, the node is, and
// all replicas at once. All complete, exactly once; clients who follow their events from replica to replica see each
// event once.
func TestBackgroundInACluster(t *testing.T) {
	t.Parallel()
	l, _, text := backgroundLayout(t, 4)
	l.throttled = false
	c := newCluster(t, l, 3)
	awaitBackground(t, c)
	addresses := []string{c.own(0, 8080), c.own(1, 8080), c.own(2, 8080)}
	var ids []string
	var readers sync.WaitGroup
	for i := range 20 {
		id := background(t, addresses[i%3], fmt.Sprint("hello ", i), nil).ID
		ids = append(ids, id)
		if i%4 == 0 {
			readers.Go(func() { (&reader{id: id, from: -1}).follow(t, addresses...) })
		}
	}
	moment := func() { time.Sleep(time.Duration(300+rand.IntN(900)) * time.Millisecond) }
	moment()
	one := rand.IntN(3)
	c.kill(one)
	moment()
	c.start(one)
	c.nodes["n1"].kill()
	c.startNode("n1")
	c.awaitLinks("n1")
	moment()
	for i := range 3 {
		c.kill(i)
	}
	for i := range 3 {
		c.launch(i)
	}
	c.awaitAll()
	c.awaitLinks("n1")
	for i, id := range ids {
		wantCompleted(t, addresses[(i+1)%3], id, text)
	}
	readers.Wait()
	c.agree()
	for _, id := range ids {
		for _, a := range addresses {
			if r, ok := poll(a, id); !ok || r.Status != "completed" || r.text() != text {
				t.Errorf("%s at %s: %+v", id, a, r)
			}
		}
	}
}

// awaitBackground waits until the cluster takes background responses: the leader raises the feature level soon after the
// start.
func awaitBackground(t testing.TB, c *cluster) {
	t.Helper()
	await(t, "the cluster takes background responses", func() bool {
		status, b := plainly("POST", c.own(0, 8080), "/v1/responses", map[string]any{"model": "m", "input": "first", "background": true})
		return status == http.StatusOK && bytes.Contains(b, []byte("queued"))
	})
}

// TestBackgroundCancelAndDelete in each state.
func TestBackgroundCancelAndDelete(t *testing.T) {
	t.Parallel()
	l, b, text := backgroundLayout(t, 1)
	w := newWorld(t, l)
	at := w.edge.openai
	cancel := func(id string) (r stored) {
		t.Helper()
		status, body := plainly("POST", at, "/v1/responses/"+id+"/cancel", nil)
		if status != http.StatusOK || json.Unmarshal(body, &r) != nil {
			t.Fatalf("cancel: %d %s", status, body)
		}
		return r
	}
	running := background(t, at, "one", nil).ID
	waiting := background(t, at, "two", nil).ID
	deleted := background(t, at, "three", nil).ID
	last := background(t, at, "four", nil).ID
	await(t, "the first one runs", func() bool { r, _ := poll(at, running); return r.Status == "in_progress" })
	for _, id := range []string{waiting, running, running} {
		if r := cancel(id); r.Status != "cancelled" {
			t.Errorf("%s is %s after the cancel", id, r.Status)
		}
		s := &reader{id: id, from: -1}
		if err := s.read(at, 0); err != nil || s.types[len(s.types)-1] != "response.cancelled" {
			t.Errorf("%s: %v %v", id, s.types, err)
		}
	}
	if status, body := plainly("DELETE", at, "/v1/responses/"+deleted, nil); status != http.StatusOK {
		t.Errorf("delete: %d %s", status, body)
	}
	if status, _ := plainly("GET", at, "/v1/responses/"+deleted, nil); status != http.StatusNotFound {
		t.Errorf("a deleted response is answered with %d", status)
	}
	wantCompleted(t, at, last, text)
	if r := cancel(last); r.Status != "completed" {
		t.Errorf("a completed response is %s after a cancel", r.Status)
	}
	await(t, "nothing runs at the backend", func() bool { return b.Stats().Current == 0 })
	w.edge.kill()
	w.restartEdge()
	at = w.edge.openai
	for id, want := range map[string]string{running: "cancelled", waiting: "cancelled", last: "completed"} {
		if r, ok := poll(at, id); !ok || r.Status != want {
			t.Errorf("%s is %s after the restart, want %s", id, r.Status, want)
		}
	}
	w.awaitLink("n1")
}

// TestResponsesBudgetAndRetention: the oldest make room, and what is old goes; both can be changed while all runs.
func TestResponsesBudgetAndRetention(t *testing.T) {
	t.Parallel()
	l, b, _ := backgroundLayout(t, 4)
	b.Set(backend.Plan{})
	l.cluster = map[string]any{"responses": map[string]any{"max_bytes": 100_000}}
	w := newWorld(t, l)
	at := w.edge.openai
	var ids []string
	for i := range 12 {
		id := background(t, at, strings.Repeat("x", 10_000)+fmt.Sprint(i), nil).ID
		ids = append(ids, id)
		awaitOver(t, id, at)
	}
	if _, ok := poll(at, ids[0]); ok {
		t.Error("the oldest response is still there, beyond the budget")
	}
	if _, ok := poll(at, ids[11]); !ok {
		t.Error("the newest response is gone")
	}
	w.layout.cluster = map[string]any{"responses": map[string]any{"max_bytes": 100_000, "retention_ms": 500}}
	w.write("edge.yaml", w.layout.edgeFile("edge-1", w.dataDir()))
	w.iopctl(0, "refresh")
	await(t, "what is old goes", func() bool { _, ok := poll(at, ids[11]); return !ok })
}

// TestKeptResponses: a foreground response with store is there on every replica, with its input, and a conversation goes
// on from it at another one; one without is not there.
func TestKeptResponses(t *testing.T) {
	t.Parallel()
	l, b, _ := backgroundLayout(t, 4)
	b.Set(backend.Plan{})
	l.throttled = false
	c := newCluster(t, l, 3)
	awaitBackground(t, c)
	var kept stored
	status, body := plainly("POST", c.own(0, 8080), "/v1/responses", map[string]any{"model": "m", "input": "hello", "store": true})
	if status != http.StatusOK || json.Unmarshal(body, &kept) != nil {
		t.Fatalf("%d %s", status, body)
	}
	if _, ok := poll(c.own(0, 8080), kept.ID); !ok {
		t.Error("this replica does not know at once what it has kept")
	}
	_, body = plainly("POST", c.own(0, 8080), "/v1/responses", map[string]any{"model": "m", "input": "hello", "store": false})
	var lost stored
	if err := json.Unmarshal(body, &lost); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		at := c.own(i, 8080)
		await(t, "the response is there", func() bool { r, ok := poll(at, kept.ID); return ok && r.text() == kept.text() })
		if status, body := plainly("GET", at, "/v1/responses/"+kept.ID+"/input_items", nil); status != http.StatusOK || !bytes.Contains(body, []byte("hello")) {
			t.Errorf("input items: %d %s", status, body)
		}
		if _, ok := poll(at, lost.ID); ok {
			t.Error("a response without store is kept")
		}
		if status, body := plainly("POST", at, "/v1/responses", map[string]any{"model": "m", "input": "more", "previous_response_id": kept.ID}); status != http.StatusOK {
			t.Errorf("going on: %d %s", status, body)
		}
	}
	if status, _ := plainly("DELETE", c.own(1, 8080), "/v1/responses/"+kept.ID, nil); status != http.StatusOK {
		t.Error("delete:", status)
	}
	c.agree()
	for i := range 3 {
		if _, ok := poll(c.own(i, 8080), kept.ID); ok {
			t.Error("a deleted response is there")
		}
	}
}

// TestResponsesOfOthers: a principal sees no response of another, whatever it asks of it; two tokens of one principal see
// the same.
func TestResponsesOfOthers(t *testing.T) {
	t.Parallel()
	l, b, _ := backgroundLayout(t, 4)
	b.Set(backend.Plan{})
	l.tokens = map[string]string{"ann": "secret-ann", "bob": "secret-bob"}
	w := newWorld(t, l)
	as := func(token, method, path string, body any) (int, []byte) {
		t.Helper()
		in, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, "http://"+w.edge.openai+path, bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Idempotency-Key", "the same")
		res, err := newClient().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		out, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, out
	}
	submit := func(token, input string) (r stored) {
		t.Helper()
		status, b := as(token, "POST", "/v1/responses", map[string]any{"model": "m", "input": input, "background": true})
		if status != http.StatusOK || json.Unmarshal(b, &r) != nil {
			t.Fatalf("submit: %d %s", status, b)
		}
		return r
	}
	anns, bobs := submit("secret-ann", "hers"), submit("secret-bob", "his")
	if anns.ID == bobs.ID {
		t.Fatal("the same Idempotency-Key of two principals gives the same response")
	}
	if again := submit("secret-ann", "hers"); again.ID != anns.ID {
		t.Errorf("a retry gives another response: %s, %s", anns.ID, again.ID)
	}
	if status, b := as("secret-ann", "POST", "/v1/responses", map[string]any{"model": "m", "input": "else", "background": true}); status != http.StatusConflict {
		t.Errorf("another request under the same key: %d %s", status, b)
	}
	for _, ask := range [][2]string{{"GET", ""}, {"GET", "?stream=true"}, {"GET", "/input_items"}, {"POST", "/cancel"}, {"DELETE", ""}} {
		if status, b := as("secret-bob", ask[0], "/v1/responses/"+anns.ID+ask[1], nil); status != http.StatusNotFound {
			t.Errorf("%s %s of another's response: %d %s", ask[0], ask[1], status, b)
		}
	}
	await(t, "her response has ended", func() bool {
		status, b := as("secret-ann", "GET", "/v1/responses/"+anns.ID, nil)
		var r stored
		return status == http.StatusOK && json.Unmarshal(b, &r) == nil && r.Status == "completed"
	})
}
