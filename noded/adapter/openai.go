package adapter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// OpenAIConfig describes an OpenAI-compatible backend.
type OpenAIConfig struct {
	BaseURL string // http://host:port/v1; its path stands in for the gateway's /v1
	APIKey  string // sent as the bearer token unless a call brings its own; "" for none

	DialTimeout   time.Duration // connect and TLS; 0 is 5 s
	HeaderTimeout time.Duration // from the request's end to the answer's headers; 0 is no bound but the call's deadline
	IdleTimeout   time.Duration // an unused connection is closed then; 0 is 3 s
	IdleMax       int           // unused connections kept; 0 is 256
	HeaderMax     int           // bytes of an answer's headers; 0 is 256 KiB
	TLS           *tls.Config   // nil is the system's roots; it is cloned
}

// OpenAI is a raw tunnel to a backend that speaks the OpenAI API: method, path, headers and body go as they are, the
// answer comes back as it is read. It keeps its own small pool of HTTP/1.1 connections and starts no goroutine per
// call (a large body apart): see exchange. Proxies from the environment are not used: a backend stands near its node.
type OpenAI struct {
	endpoint  endpoint
	key       string
	headerMax int
	headerFor time.Duration
	dialer    dialer
	pool      *pool
	buffers   sync.Pool // of *[]byte, bodyBufferBytes long
	small     sync.Pool // of *[]byte, smallBufferBytes long
}

// What is read and passed on of a body in one piece at most: little, as most of the time most streams say nothing, until
// a piece has filled that.
const (
	smallBufferBytes = 4 << 10
	bodyBufferBytes  = 32 << 10
)

// NewOpenAI returns the adapter. It connects to nothing before the first call; the error is about the configuration.
func NewOpenAI(c OpenAIConfig) (*OpenAI, error) {
	e, err := parseEndpoint(c.BaseURL)
	if err != nil {
		return nil, err
	}
	if !isValue(c.APIKey) {
		return nil, errors.New("the API key has a control character in it, a line end perhaps")
	}
	// uvicorn and llama.cpp close an idle connection after 5 s: ours go well before, so that none is used in that moment.
	idle := orDefault(c.IdleTimeout, 3*time.Second)
	o := &OpenAI{
		endpoint:  e,
		key:       c.APIKey,
		headerMax: orDefault(c.HeaderMax, 256<<10),
		headerFor: c.HeaderTimeout,
		dialer:    newDialer(e, orDefault(c.DialTimeout, 5*time.Second), c.TLS),
		pool:      newPool(idle, orDefault(c.IdleMax, 256)),
	}
	o.buffers.New = func() any { b := make([]byte, bodyBufferBytes); return &b }
	o.small.New = func() any { b := make([]byte, smallBufferBytes); return &b }
	return o, nil
}

// orDefault returns v, or def if v is not positive.
func orDefault[T time.Duration | int](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Do runs one call: see Adapter. A call goes out a second time only if a kept connection turned out to be closed
// before a byte of the request was written to it.
func (o *OpenAI) Do(ctx context.Context, c *Call, a Answer) End {
	if kept := o.pool.get(); kept != nil {
		end, written := o.exchange(ctx, kept, c, a)
		if written || ctx.Err() != nil || end.Code == CodeBadCall {
			return end
		}
	}
	fresh, err := o.dialer.dial(ctx, c.Deadline)
	if err != nil {
		return dialFailed(ctx, c, err)
	}
	end, _ := o.exchange(ctx, fresh, c, a)
	return end
}

// dialFailed ends a call that found no connection.
func dialFailed(ctx context.Context, c *Call, err error) End {
	end := End{Dispatched: DispatchedNo, Code: CodeConnectFailed, Message: err.Error()}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		end.Code = CodeCanceled
	case ctx.Err() != nil, !c.Deadline.IsZero() && !time.Now().Before(c.Deadline):
		end.Code = CodeBackendTimeout
	}
	return end
}

// Probe connects anew and, with a path, sends a GET there that must be answered with 2xx.
func (o *OpenAI) Probe(ctx context.Context, path string) error {
	deadline, _ := ctx.Deadline()
	c, err := o.dialer.dial(ctx, deadline)
	if err != nil {
		return err
	}
	if path == "" {
		c.abort()
		return nil
	}
	var got statusOnly
	call := &Call{Method: http.MethodGet, Path: path, Header: http.Header{"User-Agent": {"iop"}}, Deadline: deadline}
	if end, _ := o.exchange(ctx, c, call, &got); end.Code != CodeOK {
		return fmt.Errorf("GET %s: %s: %s", path, end.Code, end.Message)
	}
	if got.status < 200 || got.status > 299 {
		return fmt.Errorf("GET %s: status %d", path, got.status)
	}
	return nil
}

// Close closes the idle connections: see Adapter.
func (o *OpenAI) Close() { o.pool.close() }

// statusOnly is the Answer of a probe.
type statusOnly struct{ status int }

func (s *statusOnly) Head(status int, _ http.Header) error { s.status = status; return nil }
func (s *statusOnly) Data([]byte) error                    { return nil }
