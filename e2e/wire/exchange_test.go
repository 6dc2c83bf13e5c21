package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"iop/edged/nodelink"
	"iop/noded/edgelink"
)

func TestRunReachesTheNodeAsItIs(t *testing.T) {
	got := make(chan edgelink.Run, 1)
	w := newWorld(t, func(_ context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End {
		run := *r
		run.Body = bytes.Clone(r.Body)
		got <- run
		_ = a.Head(201, http.Header{"Content-Length": {"5"}, "X-Back": {"a", "b"}, "Connection": {"close"}, "Iop-Code": {"forged"}})
		_ = a.Data([]byte("hello"))
		return edgelink.End{Dispatched: edgelink.DispatchedYes}
	})
	g := w.c.admit(t, "r1")
	x := request(g, `{"a":1}`)
	x.Header["Connection"] = []string{"keep-alive"}
	x.Header["Iop-Lease"] = []string{"forged"}
	x.Header["X-Bad"] = []string{"a\r\nIop-Lease: 9"}
	x.Trace = "00-abc"
	x.Deadline = time.Now().Add(time.Hour)
	a := &answer{}
	end := w.e.links.Exchange(t.Context(), x, a)
	if want := (nodelink.End{Dispatched: nodelink.DispatchedYes, Complete: true}); end != want {
		t.Fatalf("end %+v", end)
	}
	r := <-got
	if left := time.Until(r.Deadline); left < 59*time.Minute || left > time.Hour {
		t.Error("deadline in", left)
	}
	r.Deadline = time.Time{}
	want := edgelink.Run{
		Run: 1, Lease: uint64(g.Lease), Generation: 1, Provider: "p-n1", Adapter: "adapter-1", Served: "served", Kind: "tunnel",
		Method: "POST", Path: "/v1/chat/completions?x=%2F", Body: []byte(`{"a":1}`), Trace: "00-abc",
		Header: http.Header{"Content-Type": {"application/json"}, "X-Two": {"one", "two"}},
	}
	if d := cmp.Diff(want, r); d != "" {
		t.Error(d)
	}
	if a.status != 201 || a.text() != "hello" {
		t.Errorf("%d %q", a.status, a.text())
	}
	if d := cmp.Diff(http.Header{"Content-Length": {"5"}, "X-Back": {"a", "b"}}, a.header); d != "" {
		t.Error(d)
	}
}

func TestOutcomesComeThrough(t *testing.T) {
	for _, test := range []struct {
		head bool
		end  edgelink.End
		want nodelink.End
	}{
		{
			false,
			edgelink.End{Dispatched: edgelink.DispatchedNo, Code: "connect_failed", Message: "dial: refused\nreally"},
			nodelink.End{Dispatched: nodelink.DispatchedNo, Code: "connect_failed", Message: "dial: refused really"},
		},
		{
			true,
			edgelink.End{Dispatched: edgelink.DispatchedYes, Code: "backend_broke", Message: "unexpected EOF"},
			nodelink.End{Dispatched: nodelink.DispatchedYes, Code: "backend_broke", Message: "unexpected EOF"},
		},
		{false, edgelink.End{Code: "backend_timeout"}, nodelink.End{Code: "backend_timeout"}},
		{true, edgelink.End{Dispatched: edgelink.DispatchedYes}, nodelink.End{Dispatched: nodelink.DispatchedYes, Complete: true}},
	} {
		t.Run(fmt.Sprint(test.end.Code, test.head), func(t *testing.T) {
			w := newWorld(t, func(_ context.Context, _ *edgelink.Run, a edgelink.Answer) edgelink.End {
				if test.head {
					_ = a.Head(200, nil)
				}
				return test.end
			})
			for range 2 { // the second over the same connection
				end := w.e.links.Exchange(t.Context(), request(w.c.admit(t, t.Name()+fmt.Sprint(time.Now().UnixNano())), ""), &answer{})
				if end != test.want {
					t.Errorf("end %+v", end)
				}
			}
		})
	}
}

func TestPiecesArriveAtOnceAndUnchanged(t *testing.T) {
	stream := "data: {\"t\":\"grüße 你好\"}\r\n\r\n: comment\n\ndata:[DONE]\n\n"
	next := make(chan struct{})
	w := newWorld(t, func(_ context.Context, _ *edgelink.Run, a edgelink.Answer) edgelink.End {
		_ = a.Head(200, http.Header{"Content-Type": {"text/event-stream"}})
		for i := range len(stream) {
			<-next // the one before has reached the client
			if err := a.Data([]byte{stream[i]}); err != nil {
				return edgelink.End{Code: "answer_failed"}
			}
		}
		return edgelink.End{Dispatched: edgelink.DispatchedYes}
	})
	a := &answer{onHead: func() error { next <- struct{}{}; return nil }}
	left := len(stream) - 1
	a.onData = func(p []byte) error {
		if len(p) != 1 {
			return errors.New("a piece came late")
		}
		if left > 0 {
			left--
			next <- struct{}{}
		}
		return nil
	}
	end := w.e.links.Exchange(t.Context(), request(w.c.admit(t, "r1"), "{}"), a)
	if !end.Complete || a.text() != stream {
		t.Errorf("%+v\n%q", end, a.text())
	}
}

func TestHeadAloneReachesTheClient(t *testing.T) {
	headed := make(chan struct{})
	w := newWorld(t, func(_ context.Context, _ *edgelink.Run, a edgelink.Answer) edgelink.End {
		_ = a.Head(200, http.Header{"Content-Length": {"2"}})
		<-headed
		_ = a.Data([]byte("ok"))
		return edgelink.End{Dispatched: edgelink.DispatchedYes}
	})
	a := &answer{onHead: func() error { close(headed); return nil }}
	if end := w.e.links.Exchange(t.Context(), request(w.c.admit(t, "r1"), "{}"), a); !end.Complete || a.text() != "ok" {
		t.Errorf("%+v %q", end, a.text())
	}
}

func TestLargeBodiesBothWays(t *testing.T) {
	w := newWorld(t, func(_ context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End {
		_ = a.Head(200, nil)
		err := a.Data(r.Body)
		if err != nil {
			return edgelink.End{Code: "answer_failed", Message: err.Error()}
		}
		return edgelink.End{Dispatched: edgelink.DispatchedYes}
	})
	var all sync.WaitGroup
	for _, size := range []int{0, 1, 8 << 10, 8<<10 + 1, 16 << 10, 64 << 10, 64<<10 + 1, 1 << 20, 20 << 20} {
		x := request(w.c.admit(t, fmt.Sprint(size)), strings.Repeat("0123456789abcdef!", size/17+1)[:size])
		x.Header.Set("X-Large", strings.Repeat("h", 100<<10))
		all.Go(func() {
			a := &answer{}
			if end := w.e.links.Exchange(t.Context(), x, a); !end.Complete || a.text() != string(x.Body) {
				t.Errorf("%d bytes: %+v, %d came back", size, end, len(a.body))
			}
		})
	}
	all.Wait()
}

func TestWhatCanNotTravelIsRefusedUnsent(t *testing.T) {
	w := newWorld(t, words("no"))
	for name, spoil := range map[string]func(*nodelink.Exchange){
		"path":    func(x *nodelink.Exchange) { x.Path = "/a b" },
		"method":  func(x *nodelink.Exchange) { x.Method = "GET /x HTTP/1.1\r\n" },
		"headers": func(x *nodelink.Exchange) { x.Header.Set("X-Large", strings.Repeat("h", 300<<10)) },
		"body":    func(x *nodelink.Exchange) { x.Body = make([]byte, 65<<20) },
	} {
		x := request(w.c.admit(t, name), "")
		spoil(x)
		end := w.e.links.Exchange(t.Context(), x, &answer{})
		if end.Code != nodelink.CodeMalformed || end.Dispatched != nodelink.DispatchedNo {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

func TestManyExchangesAtOnceGrowThePool(t *testing.T) {
	const many = 100
	var mu sync.Mutex
	inside := 0
	full := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End {
		mu.Lock()
		if inside++; inside == many {
			close(full)
		}
		mu.Unlock()
		<-full
		return words(string(r.Body))(ctx, r, a)
	})
	var all sync.WaitGroup
	for i := range many {
		g := w.c.admit(t, fmt.Sprint("r", i))
		all.Go(func() {
			a := &answer{}
			body := fmt.Sprint("body ", i)
			if end := w.e.links.Exchange(t.Context(), request(g, body), a); !end.Complete || a.text() != body {
				t.Errorf("%d: %+v %q", i, end, a.text())
			}
		})
	}
	all.Wait()
	st := w.e.links.Status()
	if len(st) != 1 || st[0].Busy != 0 || st[0].Runs != 0 || st[0].Idle < many {
		t.Errorf("%+v", st)
	}
}

func TestASlowClientHoldsOnlyItsOwnRun(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End {
		if string(r.Body) != "flood" {
			return words("quick")(ctx, r, a)
		}
		_ = a.Head(200, nil)
		piece := make([]byte, 32<<10)
		for range 2000 { // 64 MB, far more than all buffers on the way
			if err := a.Data(piece); err != nil {
				return edgelink.End{Dispatched: edgelink.DispatchedYes, Code: "answer_failed"}
			}
		}
		return edgelink.End{Dispatched: edgelink.DispatchedYes}
	})
	blocked := make(chan struct{})
	slow := &answer{}
	slow.onData = func([]byte) error {
		if slow.pieces == 1 {
			close(blocked)
			<-release
		}
		return nil
	}
	ended := make(chan nodelink.End, 1)
	g := w.c.admit(t, "slow")
	go func() { ended <- w.e.links.Exchange(context.Background(), request(g, "flood"), slow) }()
	<-blocked
	for i := range 50 {
		a := &answer{}
		if end := w.e.links.Exchange(t.Context(), request(w.c.admit(t, fmt.Sprint("q", i)), "q"), a); !end.Complete || a.text() != "quick" {
			t.Fatalf("%+v", end)
		}
	}
	close(release)
	if end := <-ended; !end.Complete || len(slow.body) != 2000*32<<10 {
		t.Errorf("%+v, %d bytes", end, len(slow.body))
	}
}
