package adminapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Raw asks the first edge that answers for a page as it is, of whatever kind: for those who keep pages and don't read them.
// What isn't answered with 200 is an error, as of the other calls.
func (c *Client) Raw(ctx context.Context, path string) ([]byte, error) {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	var failed UnreachableError
	for _, b := range c.bases {
		body, err := c.raw(ctx, b, path)
		var refusal *Error
		if err == nil || errors.As(err, &refusal) {
			return body, err
		}
		failed.Attempts = append(failed.Attempts, Attempt{Address: b.address, Err: err})
	}
	return nil, &failed
}

func (c *Client) raw(ctx context.Context, b base, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", b.address, err)
	}
	c.introduce(req)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, plainCause(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, decode(b.address, res, &struct{}{})
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, bodyMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", plainCause(err))
	case len(body) > bodyMax:
		return nil, fmt.Errorf("the answer is longer than %d MiB", bodyMax>>20)
	}
	return body, nil
}
