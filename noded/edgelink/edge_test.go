package edgelink

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"iop/proto/nodepb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// edge is an edge played by hand: what it does with a call is the test's.
type edge struct {
	nodepb.UnimplementedNodeLinkServer
	play    func(st grpc.BidiStreamingServer[nodepb.NodeFrame, nodepb.EdgeFrame], reg *nodepb.Register) error
	control string
}

func (e *edge) Link(st grpc.BidiStreamingServer[nodepb.NodeFrame, nodepb.EdgeFrame]) error {
	f, err := st.Recv()
	if err != nil {
		return err
	}
	return e.play(st, f.GetRegister())
}

// playEdge starts an edge that serves control connections only.
func playEdge(t *testing.T, play func(st grpc.BidiStreamingServer[nodepb.NodeFrame, nodepb.EdgeFrame], reg *nodepb.Register) error) *edge {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &edge{play: play, control: l.Addr().String()}
	s := grpc.NewServer(grpc.WaitForHandlers(true))
	nodepb.RegisterNodeLinkServer(s, e)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return e
}

type idle struct{}

func (idle) Configure(context.Context, uint64, *nodepb.NodeConfigPayload) error { return nil }
func (idle) Run(context.Context, *Run, Answer) End                              { return End{} }

// logs collects what a link logs.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// run starts a link and returns its log; it is stopped at the test's end.
func run(t *testing.T, o Options) *logs {
	t.Helper()
	out := &logs{}
	o.NodeID, o.Token = "n", "s3cret-token"
	if o.Hands == nil {
		o.Hands = idle{}
	}
	o.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if o.BackoffMin == 0 {
		o.BackoffMin, o.BackoffMax = time.Millisecond, 5*time.Millisecond
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("Run does not return")
		}
		if strings.Contains(out.String(), "s3cret") {
			t.Error("the token is in the log")
		}
	})
	return out
}

func within(t *testing.T, fact string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("never came true: " + fact)
	}
}

func TestRefusalIsLoggedWithItsCureAndTriedAgain(t *testing.T) {
	again := make(chan struct{})
	calls := 0
	var mu sync.Mutex
	e := playEdge(t, func(st grpc.BidiStreamingServer[nodepb.NodeFrame, nodepb.EdgeFrame], reg *nodepb.Register) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 3 {
			close(again)
		}
		if reg.Token != "s3cret-token" || reg.Instance == 0 || reg.ProtocolMin != 1 || reg.Platform == "" {
			t.Error("registration", reg)
		}
		return st.Send(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Refused{Refused: &nodepb.Refused{
			Code: "unknown_node", Message: "no such node", Cure: "add it",
		}}})
	})
	out := run(t, Options{Address: e.control})
	within(t, "it tries again", again)
	for _, part := range []string{"unknown_node", "no such node", "add it"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the log lacks %q:\n%s", part, out)
		}
	}
	if n := strings.Count(out.String(), "level=ERROR"); n != 1 || !strings.Contains(out.String(), "level=DEBUG") {
		t.Errorf("the same refusal is told %d times, want once, the others for those who debug:\n%s", n, out)
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	lost := make(chan struct{})
	var once sync.Once
	out := run(t, Options{Address: address, Observe: func(s State) {
		if s.Phase == PhaseLost {
			once.Do(func() { close(lost) })
		}
	}})
	within(t, "it is told", lost)
	if s := out.String(); !strings.Contains(s, "connection refused (start edged there") || strings.Contains(s, "rpc error") {
		t.Error(s)
	}
}

// The port of clients or operators in node.edges must not be taken for a want of TLS.
func TestAnHTTPPortIsToldToBeNone(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	lost := make(chan struct{})
	var once sync.Once
	out := run(t, Options{Address: s.Listener.Addr().String(), Observe: func(s State) {
		if s.Phase == PhaseLost {
			once.Do(func() { close(lost) })
		}
	}})
	within(t, "it is told", lost)
	if text := out.String(); !strings.Contains(text, "that is no node listener") || strings.Contains(text, "node.tls") {
		t.Error(text)
	}
}

// A fault that goes on is told again after a while, with how often it was tried; a new one at once.
func TestFaultsAreToldOnceAMinute(t *testing.T) {
	out := &logs{}
	log := slog.New(slog.NewTextHandler(out, nil))
	var f fault
	f.log(log, slog.LevelWarn, "read 127.0.0.1:5001: reset", "down")
	f.log(log, slog.LevelWarn, "read 127.0.0.1:5002: reset", "down")
	f.told = f.told.Add(-faultPause)
	f.log(log, slog.LevelWarn, "read 127.0.0.1:5003: reset", "down")
	f.log(log, slog.LevelWarn, "refused", "down")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[1], "tries=2") {
		t.Error(out)
	}
}

// An edge that accepts the connection and says nothing holds the node for a bounded time.
func TestSilentEdgeDuringRegistration(t *testing.T) {
	twice := make(chan struct{}, 16)
	e := playEdge(t, func(st grpc.BidiStreamingServer[nodepb.NodeFrame, nodepb.EdgeFrame], _ *nodepb.Register) error {
		twice <- struct{}{}
		<-st.Context().Done()
		return nil
	})
	run(t, Options{Address: e.control, DialTimeout: 20 * time.Millisecond})
	<-twice
	<-twice
}

func accepted() *nodepb.EdgeFrame {
	return &nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Accepted{Accepted: &nodepb.Accepted{
		Generation: 1, HeartbeatIntervalMs: 10, HeartbeatMissed: 3, Secret: make([]byte, nodepb.SecretLen), Protocol: 1, BodyMaxBytes: 1 << 20,
	}}}
}

func TestSilentEdgeIsLeft(t *testing.T) {
	e := playEdge(t, func(st grpc.BidiStreamingServer[nodepb.NodeFrame, nodepb.EdgeFrame], _ *nodepb.Register) error {
		_ = st.Send(accepted())
		<-st.Context().Done()
		return nil
	})
	left := make(chan struct{})
	var once sync.Once
	run(t, Options{Address: e.control, Observe: func(s State) {
		if errors.Is(s.Err, errSilent) {
			once.Do(func() { close(left) })
		}
	}})
	within(t, "the node leaves", left)
}

func TestGoodbyeNamesWhenToComeBack(t *testing.T) {
	came := make(chan time.Time, 8)
	const wait = 50 * time.Millisecond
	e := playEdge(t, func(st grpc.BidiStreamingServer[nodepb.NodeFrame, nodepb.EdgeFrame], _ *nodepb.Register) error {
		came <- time.Now()
		_ = st.Send(accepted())
		return st.Send(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Goodbye{Goodbye: &nodepb.Goodbye{
			Reason: "stop", RetryAfterMs: uint64(wait / time.Millisecond),
		}}})
	})
	run(t, Options{Address: e.control})
	first, second := <-came, <-came
	if second.Sub(first) < wait {
		t.Error("it came back after", second.Sub(first))
	}
}

func TestProtocolThatTheNodeDoesNotSpeak(t *testing.T) {
	again := make(chan struct{}, 16)
	e := playEdge(t, func(st grpc.BidiStreamingServer[nodepb.NodeFrame, nodepb.EdgeFrame], _ *nodepb.Register) error {
		f := accepted()
		f.GetAccepted().Protocol = 9
		again <- struct{}{}
		_ = st.Send(f)
		<-st.Context().Done()
		return nil
	})
	out := run(t, Options{Address: e.control})
	<-again
	<-again
	if !strings.Contains(out.String(), "protocol 9") {
		t.Error(out)
	}
}

// The answer's rules hold whatever the hands do.
func TestAnswerIsOneHeadThenData(t *testing.T) {
	near, far := net.Pipe()
	read := make(chan string, 1)
	go func() {
		b, _ := bufio.NewReader(far).ReadString(0)
		read <- b
	}()
	var a answer
	a.init(near)
	a.reset()
	if err := a.Data([]byte("early")); err == nil {
		t.Error("data before the head")
	}
	if err := a.Head(99, nil); err == nil {
		t.Error("status 99")
	}
	if err := a.Head(200, nil); err != nil {
		t.Error(err)
	}
	if err := a.Head(200, nil); err == nil {
		t.Error("two heads")
	}
	if err := a.Data(nil); err != nil {
		t.Error(err)
	}
	if err := a.Data([]byte("x")); err != nil {
		t.Error(err)
	}
	if err := a.end(nodepb.Outcome{Dispatched: "yes"}); err != nil {
		t.Error(err)
	}
	a.stop()
	_ = near.Close()
	want := "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nIop-Dispatched: yes\r\n\r\n"
	if got := <-read; got != want {
		t.Errorf("%q", got)
	}
	a.reset()
	if err := a.Head(200, nil); err != nil {
		t.Error(err)
	}
	if err := a.Data([]byte("x")); err == nil {
		t.Error("no error although the connection is closed")
	}
}
