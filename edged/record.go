package edged

import (
	"encoding/json"
	"fmt"
	"net/http"

	"iop/edged/openai"
	"iop/edged/openai/respond"
	"iop/fsm"
	"iop/storage"
)

// recordFormat is that of a record in the vault.
const recordFormat = 1

// record is what the vault has of a response beside its object and its events.
type record struct {
	Format    int               `json:"format"`
	Token     string            `json:"token,omitempty"`
	Model     string            `json:"model"`
	Created   int64             `json:"created"`
	Previous  string            `json:"previous,omitempty"`
	Input     []json.RawMessage `json:"input,omitempty"`
	Admission string            `json:"admission,omitempty"`
	Sum       []byte            `json:"sum,omitempty"`
	Request   []byte            `json:"request,omitempty"`
	Header    http.Header       `json:"header,omitempty"`
}

func encodeRecord(r *openai.Stored) ([]byte, error) {
	c := record{
		Format: recordFormat, Token: r.Token, Model: r.Model, Created: r.Created, Previous: r.Previous, Input: r.Input,
		Admission: r.Admission, Request: r.Request,
	}
	if r.Background {
		c.Sum = r.Sum[:]
		c.Header = r.Header.Clone()
		delete(c.Header, "Cookie") // what may be a secret is not written down
	}
	b, err := json.Marshal(&c)
	if err != nil {
		return nil, fmt.Errorf("encode response %s: %w", r.ID, err)
	}
	return b, nil
}

func decodeRecord(r *storage.StoredResponse) (*openai.Stored, error) {
	var c record
	if err := json.Unmarshal(r.Record, &c); err != nil {
		return nil, fmt.Errorf("decode response %s: %w", r.ID, err)
	}
	if c.Format != recordFormat {
		return nil, fmt.Errorf("response %s has format %d, this version reads %d", r.ID, c.Format, recordFormat)
	}
	out := &openai.Stored{
		ID: string(r.ID), Principal: string(r.Principal), Token: c.Token, Model: c.Model, Created: c.Created, Previous: c.Previous,
		Status: respond.Status(r.Status.String()), Input: c.Input, Object: r.Object, Background: r.Background, Admission: c.Admission,
		Request: c.Request, Header: c.Header,
	}
	copy(out.Sum[:], c.Sum)
	if r.Cause != fsm.RefusalNone {
		out.Object, _ = respond.GiveUp(r.Object, r.Cause.String(), givenUp(r.Cause))
	}
	return out, nil
}
