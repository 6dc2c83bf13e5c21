package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
)

// identify finds out who calls, and gives the request its id: from the Idempotency-Key, or a new one.
func (x *exchange) identify(r *http.Request) (id string) {
	who, ok := x.catalog.identify(r.Header)
	if !ok {
		x.fail = badKey(r.Header)
		return ""
	}
	x.who = who
	if v := r.Header["Idempotency-Key"]; len(v) > 0 && v[0] != "" {
		sum := sha256.Sum256([]byte(who.principal + "\x00" + v[0]))
		x.id = "idem_" + hex.EncodeToString(sum[:])
	} else {
		x.id = x.s.newID()
	}
	return x.id
}

// prepare reads the request and looks through it.
func (x *exchange) prepare(r *http.Request) *failure {
	if v := r.Header["Content-Encoding"]; len(v) > 0 && v[0] != "" && !strings.EqualFold(v[0], "identity") {
		return &failure{kind: kindEncoding, message: "The body is encoded as " + shown(v[0]) + ". Send it without Content-Encoding."}
	}
	if f := x.readBody(r); f != nil {
		return f
	}
	if f := x.look(r.Context()); f != nil {
		return f
	}
	var ok bool
	if x.provKey, ok = x.catalog.ProviderAuth.providerKey(r.Header); !ok {
		return &failure{kind: kindProviderKey, message: "Your own key for the provider is missing. Send it in the header " + x.catalog.ProviderAuth.FromHeader + "."}
	}
	return nil
}

// look looks through the body.
func (x *exchange) look(ctx context.Context) *failure {
	if f := x.find(); f != nil {
		return f
	}
	if x.route.responds {
		if f := x.readResponse(ctx); f != nil {
			return f
		}
	}
	if x.messages != nil {
		if f := x.messages.read(); f != nil {
			return f
		}
	}
	x.plan()
	x.raw = x.scan.text.tokens()
	return nil
}

// find finds the model, in a JSON object or in a form.
func (x *exchange) find() *failure {
	if x.route.capability != "" {
		if boundary := boundaryOf(x.r.Header); boundary != "" {
			return x.readForm(boundary)
		}
	}
	if err := x.scan.scan(x.body); err != nil {
		return badJSON(x.body, err)
	}
	return x.readModel()
}

func badJSON(body []byte, err error) *failure {
	f := &failure{kind: kindJSON, message: "The body can't be read: " + err.Error() + "."}
	if len(body) == 0 {
		f.message = "The body is empty. Send a JSON object with at least \"model\"."
	}
	if errors.Is(err, errTooMany) || errors.Is(err, errNotObject) || errors.Is(err, errCase) {
		f.kind = kindMalformed
	}
	return f
}

// readModel finds the model and whether a stream is asked for. Of keys that occur twice the last counts.
func (x *exchange) readModel() *failure {
	var value []byte
	x.streams = false
	for _, m := range x.scan.members {
		switch m.key {
		case keyModel:
			value = x.body[m.from:m.to]
		case keyStream:
			x.streams = string(x.body[m.from:m.to]) == "true"
		}
	}
	if len(value) == 0 || value[0] != '"' {
		return &failure{kind: kindMalformed, param: "model", message: "The body must name a \"model\" as a string. GET /v1/models lists the models there are."}
	}
	inner := value[1 : len(value)-1]
	x.plainName = true
	x.model = x.catalog.find(string(inner))
	if x.model == nil {
		x.name = unquote(value)
		x.plainName = x.name == string(inner)
		x.model = x.catalog.find(x.name)
	}
	if x.model == nil {
		if f := x.catalog.noDirect(x.name); f != nil {
			return f
		}
		return noModel(x.name)
	}
	if !x.catalog.may(x.who, x.model) {
		return noModel(x.model.name)
	}
	x.name = x.model.name
	return nil
}
