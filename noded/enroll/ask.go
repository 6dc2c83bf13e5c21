package enroll

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// welcome is the edge's answer (edged/bootstrap.Welcome).
type welcome struct {
	Node      string   `json:"node"`
	Edges     []string `json:"edges"`
	TLS       bool     `json:"tls"`
	CA        string   `json:"ca"`
	Plaintext bool     `json:"plaintext"`

	ClientCert bool `json:"client_cert"`
}

const (
	answerMax = 256 << 10        // bytes of an answer
	tryTime   = 15 * time.Second // that one try may take
	waitFirst = 300 * time.Millisecond
	waitMost  = 5 * time.Second
)

// Refused is the edge's no.
type Refused struct{ Code, Message, Cure string }

func (r *Refused) Error() string { return "the edge refuses: " + r.Message + "; " + r.Cure }

// ask joins, and asks again while the edge can't be reached or can't answer: the same hash gives the same answer.
func (o *Options) ask(ctx context.Context, hash string) (*welcome, error) {
	u, err := url.Parse(o.Edge)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the edge %q is no http or https URL: give that of its openai listener", o.Edge)
	}
	wait := o.Wait
	if wait <= 0 {
		wait = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	body, err := json.Marshal(map[string]string{"join_token": o.Token, "node_token_sha256": hash})
	if err != nil {
		return nil, err
	}
	target := strings.TrimRight(o.Edge, "/") + "/bootstrap/join"
	for pause := waitFirst; ; pause = min(2*pause, waitMost) {
		w, after, err := o.try(ctx, target, body)
		var no *Refused
		if err == nil || errors.As(err, &no) {
			return w, err
		}
		select {
		case <-time.After(max(pause, after)):
		case <-ctx.Done():
			return nil, fmt.Errorf("join at %s: %w", o.Edge, err)
		}
	}
}

// try asks once. A *Refused is final, other errors are not; after is how long the edge wants to be left alone.
func (o *Options) try(ctx context.Context, target string, body []byte) (w *welcome, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	q.Header.Set("Content-Type", "application/json")
	client := o.Client
	if client == nil {
		// A token is not taken to where a redirect points.
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		defer client.CloseIdleConnections()
	}
	res, err := client.Do(q)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close() //nolint:errcheck // read from only
	data, err := io.ReadAll(io.LimitReader(res.Body, answerMax))
	if err != nil {
		return nil, 0, err
	}
	return decode(res, data)
}

func decode(res *http.Response, data []byte) (*welcome, time.Duration, error) {
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	if res.StatusCode == http.StatusOK {
		w := &welcome{}
		if err := json.Unmarshal(data, w); err != nil || w.Node == "" || len(w.Edges) == 0 {
			return nil, 0, &Refused{Code: "stranger", Message: "its answer names no node and no edge", Cure: "give the URL of the edge's openai listener"}
		}
		return w, 0, nil
	}
	var e struct {
		Error *struct{ Code, Message, Cure string } `json:"error"`
	}
	if json.Unmarshal(data, &e) != nil || e.Error == nil || e.Error.Cure == "" {
		if res.StatusCode >= http.StatusInternalServerError {
			return nil, 0, fmt.Errorf("it answers %s", res.Status)
		}
		return nil, 0, &Refused{Code: "stranger", Message: "it answers " + res.Status, Cure: "give the URL of the edge's openai listener"}
	}
	no := &Refused{Code: e.Error.Code, Message: e.Error.Message, Cure: e.Error.Cure}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= http.StatusInternalServerError {
		return nil, time.Duration(seconds) * time.Second, errors.New(no.Message)
	}
	return nil, 0, no
}
