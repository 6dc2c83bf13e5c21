package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultPort is the port of an address that names none.
const DefaultPort = "9080"

// bodyMax bounds an answer in bytes: some 100,000 waiters.
const bodyMax = 64 << 20

// ClientOptions say whom to ask and how.
type ClientOptions struct {
	// Addresses of admin listeners (HOST:PORT, HOST, or a URL), asked in turn until one answers. At least one.
	Addresses []string
	// Token is sent as a bearer token; "" = none.
	Token string
	// Operator is the name that changes are logged under, beside the address they come from; "" = none. The edge does not
	// check it.
	Operator string
	// Timeout bounds a call over all addresses together; 0 = only the context does.
	Timeout time.Duration
	// Transport carries the calls; nil = one of its own that uses no proxy.
	Transport http.RoundTripper
}

// Client asks an edge's admin listener. It is safe for concurrent use.
type Client struct {
	bases    []base
	token    string
	operator string
	timeout  time.Duration
	http     *http.Client
}

// base is an address as it was given, and the URL that it stands for.
type base struct {
	address string
	url     string
}

// NewClient makes a client. It fails if there is no address or one is malformed; it connects to nothing.
func NewClient(o ClientOptions) (*Client, error) {
	if len(o.Addresses) == 0 {
		return nil, errors.New("no edge address given")
	}
	c := &Client{token: o.Token, operator: o.Operator, timeout: o.Timeout}
	for _, a := range o.Addresses {
		u, err := parseAddress(a)
		if err != nil {
			return nil, err
		}
		c.bases = append(c.bases, base{address: a, url: u})
	}
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}
	}
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks for the whole at a glance.
func (c *Client) Status(ctx context.Context) (*Status, error) { return get[Status](ctx, c, "/status") }

// Providers asks for all providers.
func (c *Client) Providers(ctx context.Context) (*ProviderList, error) {
	return get[ProviderList](ctx, c, "/providers")
}

// Nodes asks for all nodes.
func (c *Client) Nodes(ctx context.Context) (*NodeList, error) {
	return get[NodeList](ctx, c, "/nodes")
}

// Models asks for all models.
func (c *Client) Models(ctx context.Context) (*ModelList, error) {
	return get[ModelList](ctx, c, "/models")
}

// Leases asks for all leases.
func (c *Client) Leases(ctx context.Context, at Moment) (*LeaseList, error) {
	return get[LeaseList](ctx, c, "/leases"+at.query())
}

// Lease asks for one lease, by its id or its request's.
func (c *Client) Lease(ctx context.Context, id string, at Moment) (*LeaseDetail, error) {
	return get[LeaseDetail](ctx, c, "/leases/"+url.PathEscape(id)+at.query())
}

// Moment is a point in the log to look back to: after an entry, or at a wall time. The zero value is now.
type Moment struct {
	Index uint64
	Time  time.Time
}

// Now tells whether it is the zero value.
func (m Moment) Now() bool { return m.Index == 0 && m.Time.IsZero() }

func (m Moment) query() string {
	switch {
	case m.Index != 0:
		return "?at=" + strconv.FormatUint(m.Index, 10)
	case !m.Time.IsZero():
		return "?at_time=" + url.QueryEscape(m.Time.Format(time.RFC3339Nano))
	}
	return ""
}

// Queue asks for all waiters.
func (c *Client) Queue(ctx context.Context, at Moment) (*WaiterList, error) {
	return get[WaiterList](ctx, c, "/queue"+at.query())
}

// Request asks where a request is.
func (c *Client) Request(ctx context.Context, id string, at Moment) (*Request, error) {
	return get[Request](ctx, c, "/requests/"+url.PathEscape(id)+at.query())
}

// Config asks for the configuration that is in effect.
func (c *Client) Config(ctx context.Context) (*Config, error) { return get[Config](ctx, c, "/config") }

// ConfigHistory asks for the last revisions of the configuration.
func (c *Client) ConfigHistory(ctx context.Context) (*ConfigHistory, error) {
	return get[ConfigHistory](ctx, c, "/config/history")
}

// ConfigAt asks for the configuration of a revision that is in the history.
func (c *Client) ConfigAt(ctx context.Context, revision uint64) (*Config, error) {
	return get[Config](ctx, c, "/config/history/"+strconv.FormatUint(revision, 10))
}

// Pulse asks what happened lately on the edge that answers.
func (c *Client) Pulse(ctx context.Context) (*Pulse, error) { return get[Pulse](ctx, c, "/pulse") }

// Refresh applies a configuration, or reports what that would do. A report whose Result is a refusal is no error.
func (c *Client) Refresh(ctx context.Context, r RefreshRequest) (*RefreshReport, error) {
	return ask[RefreshReport](ctx, c, call{method: http.MethodPost, path: "/refresh" + r.query(), body: r.File})
}

// query is all but the file.
func (r *RefreshRequest) query() string {
	q := url.Values{}
	if r.DryRun {
		q.Set("dry_run", "true")
	}
	if r.LiveOnly {
		q.Set("live_only", "true")
	}
	if r.Expected != nil {
		q.Set("expected_revision", strconv.FormatUint(*r.Expected, 10))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// call is what is asked.
type call struct {
	method, path string
	body         []byte
}

func get[T any](ctx context.Context, c *Client, path string) (*T, error) {
	return ask[T](ctx, c, call{method: http.MethodGet, path: path})
}

// ask asks the edges in turn. An edge that answers, be it with a refusal, ends the search; one that can't be reached or
// has failed itself does not. What changes something is asked of the next one only if this one can't have heard it.
func ask[T any](ctx context.Context, c *Client, what call) (*T, error) {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	var failed UnreachableError
	for i, b := range c.bases {
		out := new(T)
		err := c.attempt(ctx, b, what, len(c.bases)-i, out)
		if err == nil {
			return out, nil
		}
		var refusal *Error
		if errors.As(err, &refusal) && (refusal.Status < 500 || len(c.bases) == 1) {
			return nil, err
		}
		failed.Attempts = append(failed.Attempts, Attempt{Address: b.address, Err: err})
		if ctx.Err() != nil || what.method != http.MethodGet && !unheard(err) {
			break
		}
	}
	return nil, &failed
}

// unheard tells that the edge was never reached.
func unheard(err error) bool {
	var o *net.OpError
	return errors.As(err, &o) && o.Op == "dial"
}

// attempt asks one edge, with an equal share of the time that is left for those still to ask.
func (c *Client) attempt(ctx context.Context, b base, what call, left int, out any) error {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, what.method, b.url+what.path, bytes.NewReader(what.body))
	if err != nil {
		return fmt.Errorf("ask %s: %w", b.address, err)
	}
	req.Header.Set("Accept", "application/json")
	c.introduce(req)
	res, err := c.http.Do(req)
	if err != nil {
		return plainCause(err)
	}
	defer func() { _ = res.Body.Close() }()
	return decode(b.address, res, out)
}

// introduce says who calls.
func (c *Client) introduce(req *http.Request) {
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.operator != "" {
		req.Header.Set(HeaderOperator, url.PathEscape(c.operator))
	}
}

// HeaderOperator names who makes a change, as he says himself, percent-encoded where it is not ASCII. It is logged beside
// the address that he calls from, and decides nothing.
const HeaderOperator = "Iop-Operator"

// decode reads an answer into out, or as an Error.
func decode(address string, res *http.Response, out any) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, bodyMax+1))
	if err != nil {
		return fmt.Errorf("read the answer: %w", plainCause(err))
	}
	if len(body) > bodyMax {
		return fmt.Errorf("the answer is longer than %d MiB", bodyMax>>20)
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/json" {
		if res.StatusCode == http.StatusBadRequest && bytes.Contains(body, []byte("HTTP request to an HTTPS server")) {
			return plainError(address, res)
		}
		return strangerError(address, res)
	}
	if res.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, out); err != nil {
			return strangerError(address, res)
		}
		return nil
	}
	if r, ok := out.(*RefreshReport); ok && json.Unmarshal(body, r) == nil && r.Result != "" {
		return nil
	}
	var e ErrorBody
	if err := json.Unmarshal(body, &e); err != nil || e.Error == nil || e.Error.Cure == "" {
		return strangerError(address, res)
	}
	e.Error.Status = res.StatusCode
	return e.Error
}

// strangerError is the answer of something that is not an admin listener.
func strangerError(address string, res *http.Response) error {
	return &Error{
		Code:    "not_admin",
		Message: fmt.Sprintf("%s answered %s, but not as the admin listener of an edge", address, res.Status),
		Cure:    "name the address that edged's ready line shows as admin=HOST:PORT (not openai= or node=) with --edge or IOP_EDGE",
		Status:  res.StatusCode,
	}
}

// plainError is the answer of a listener that speaks TLS.
func plainError(address string, res *http.Response) error {
	return &Error{
		Code:    "tls_needed",
		Message: address + " speaks TLS, and was asked in plain text",
		Cure:    "name the authority of its certificate with --ca or IOP_CA: the file that edge.tls of the edges' file is signed by",
		Status:  res.StatusCode,
	}
}

// plainCause strips what the caller knows (method, URL, a second "timeout") from an HTTP client's error.
func plainCause(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errTimeout
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err
}

var errTimeout = errors.New("no answer in time")

// parseAddress turns what HostPort takes or a URL into a base URL without a trailing slash.
func parseAddress(a string) (string, error) {
	if strings.HasPrefix(a, "http://") || strings.HasPrefix(a, "https://") {
		u, err := url.Parse(a)
		if err != nil || u.Host == "" {
			return "", fmt.Errorf("edge address %q is not a URL", a)
		}
		return u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/"), nil
	}
	at, err := HostPort(a)
	if err != nil {
		return "", err
	}
	return "http://" + at, nil
}

// HostPort makes HOST:PORT of HOST:PORT, :PORT, PORT or HOST, any of them with a slash behind it, as people copy it from URLs.
func HostPort(a string) (string, error) {
	trimmed := strings.TrimRight(a, "/")
	if trimmed != "" && strings.Trim(trimmed, "0123456789") == "" { // no host has such a name
		trimmed = ":" + trimmed
	}
	host, port, err := net.SplitHostPort(trimmed)
	if err != nil {
		host, port = strings.Trim(trimmed, "[]"), DefaultPort
	}
	if host == "" && err == nil {
		host = "127.0.0.1"
	}
	if host == "" || port == "" || strings.ContainsAny(host, "/ @?#") || strings.Trim(port, "0123456789") != "" {
		return "", fmt.Errorf("edge address %q is not HOST:PORT", a)
	}
	return net.JoinHostPort(host, port), nil
}
