package adminapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// liveQuiet is how long a feed may be silent: the edge sends something every fifteen seconds at the latest.
const liveQuiet = 45 * time.Second

// ErrBye says that the edge stops. It, or another edge, may take a new call soon.
var ErrBye = errors.New("the edge stops")

// Live calls fn with each frame of one edge's feed, in order, the first a whole. It holds one connection, to the first edge
// that answers, and returns why that ended: what fn returned, ErrBye, an *Error of the edge (code no_live: it is too old to
// have a feed), or what broke; never nil. Who wants to go on calls it again. every is how often the edge looks:
// LiveEveryMin to LiveEveryMax, 0 = once a second.
func (c *Client) Live(ctx context.Context, every time.Duration, fn func(*Frame) error) error {
	path := "/live"
	if every > 0 {
		path += fmt.Sprintf("?every=%d", every.Milliseconds())
	}
	var failed UnreachableError
	for i, b := range c.bases {
		begun, err := c.live(ctx, b, path, fn)
		var refusal *Error
		if begun || ctx.Err() != nil || errors.As(err, &refusal) && (refusal.Status < 500 || i+1 == len(c.bases)) {
			return err
		}
		failed.Attempts = append(failed.Attempts, Attempt{Address: b.address, Err: err})
	}
	return &failed
}

// live reads one feed. begun: it was one.
func (c *Client) live(ctx context.Context, b base, path string, fn func(*Frame) error) (begun bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := liveQuiet
	if c.timeout > 0 {
		patience = c.timeout
	}
	quiet := time.AfterFunc(patience, func() { cancel(errTimeout) })
	defer quiet.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
	if err != nil {
		return false, fmt.Errorf("ask %s: %w", b.address, err)
	}
	req.Header.Set("Accept", "text/event-stream")
	c.introduce(req)
	res, err := c.http.Do(req)
	if err != nil {
		if errors.Is(context.Cause(ctx), errTimeout) {
			err = errTimeout
		}
		return false, plainCause(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		return false, tooOld(b.address, decode(b.address, res, &struct{}{}))
	}
	err = readFrames(res.Body, func() { quiet.Reset(liveQuiet) }, fn)
	if cause := context.Cause(ctx); cause != nil {
		return true, fmt.Errorf("read the live feed of %s: %w", b.address, cause)
	}
	return true, err
}

// tooOld makes an error that tells of the feed from that of an edge that does not have it.
func tooOld(address string, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Status != http.StatusNotFound {
		return err
	}
	return &Error{
		Code: "no_live", Message: "the edge at " + address + " has no live feed: it is of an older version",
		Cure: "upgrade edged there; until then 'iopctl status' and 'iopctl queue list' tell how it is", Status: http.StatusNotFound,
	}
}

// readFrames reads events until the stream ends; heard is called with each line.
func readFrames(from io.Reader, heard func(), fn func(*Frame) error) error {
	in := bufio.NewReaderSize(from, 64<<10)
	var event, data []byte
	for {
		line, err := readLine(in)
		if err != nil {
			return fmt.Errorf("read the live feed: %w", err)
		}
		heard()
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "event":
			event = bytes.Clone(value)
		case "data":
			data = value
		case "":
			if err := takeEvent(string(event), data, fn); err != nil {
				return err
			}
			event, data = nil, nil
		}
	}
}

func takeEvent(event string, data []byte, fn func(*Frame) error) error {
	switch event {
	case LiveBye:
		return ErrBye
	case LiveWhole, LiveChange:
		var f Frame
		if err := json.Unmarshal(data, &f); err != nil {
			return fmt.Errorf("read a frame of the live feed: %w", err)
		}
		f.Whole = event == LiveWhole
		return fn(&f)
	}
	return nil
}

// readLine reads a line of at most bodyMax, without its end.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > bodyMax:
			return nil, fmt.Errorf("a frame is longer than %d MiB", bodyMax>>20)
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}
