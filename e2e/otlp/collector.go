// Package otlp is a collector of OpenTelemetry traces for tests: it listens on a real socket, over gRPC or HTTP, keeps what
// it is sent, and can be as bad as a collector may be. Tests of e2e and of this room start one; see Collector.
package otlp

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // clients compress
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Mood is what a collector does with an export.
type Mood int32

// The moods.
const (
	Takes   Mood = iota // it keeps the spans
	Refuses             // it answers with an error
	Hangs               // it never answers
	Forgets             // it takes the spans, and keeps none
)

// Collector keeps spans.
type Collector struct {
	URL  string // endpoint for a configuration
	mood atomic.Int32
	quit chan struct{}
	stop func()

	mu      sync.Mutex
	spans   []Span
	asked   int // exports, whatever became of them
	headers map[string]string
}

// New starts a collector on a free port; protocol is grpc or http.
func New(protocol string) (*Collector, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("collector: %w", err)
	}
	c := &Collector{URL: "http://" + l.Addr().String(), quit: make(chan struct{}), headers: map[string]string{}}
	var over sync.WaitGroup
	if protocol == "grpc" {
		s := grpc.NewServer()
		collectorpb.RegisterTraceServiceServer(s, &service{c: c})
		over.Go(func() { _ = s.Serve(l) })
		c.stop = func() { s.Stop(); over.Wait() }
		return c, nil
	}
	s := &http.Server{Handler: http.HandlerFunc(c.serveHTTP)}
	over.Go(func() { _ = s.Serve(l) })
	c.stop = func() { _ = s.Close(); over.Wait() }
	return c, nil
}

// Close ends it. What hangs ends too.
func (c *Collector) Close() {
	close(c.quit)
	c.stop()
}

// Set changes its mood.
func (c *Collector) Set(m Mood) { c.mood.Store(int32(m)) }

// Spans are those kept so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Asked is how many exports came.
func (c *Collector) Asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// Header is the last value of a header of an export; names are in lower case.
func (c *Collector) Header(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers[name]
}

var errRefused = errors.New("the collector refuses")

// take does with an export what the mood says.
func (c *Collector) take(ctx context.Context, r *collectorpb.ExportTraceServiceRequest, header func(string) string) error {
	c.mu.Lock()
	c.asked++
	for _, name := range []string{"authorization", "x-tenant"} {
		c.headers[name] = header(name)
	}
	c.mu.Unlock()
	switch Mood(c.mood.Load()) {
	case Refuses:
		return errRefused
	case Hangs:
		select {
		case <-ctx.Done():
		case <-c.quit:
		}
		return errRefused
	case Forgets:
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, read(r)...)
	return nil
}

// service is the collector over gRPC.
type service struct {
	collectorpb.UnimplementedTraceServiceServer
	c *Collector
}

// Export implements the service.
func (s *service) Export(ctx context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if err := s.c.take(ctx, r, func(name string) string {
		if v := md.Get(name); len(v) > 0 {
			return v[0]
		}
		return ""
	}); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func (c *Collector) serveHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	data, err := io.ReadAll(body)
	q := &collectorpb.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(data, q)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
		return
	}
	if err := c.take(r.Context(), q, r.Header.Get); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer, err := proto.Marshal(&collectorpb.ExportTraceServiceResponse{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}
