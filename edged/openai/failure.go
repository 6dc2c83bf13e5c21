package openai

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"iop/edged/metrics"
)

// failure is an error that a client is told.
type failure struct {
	kind
	message    string // the cause and the cure
	param      string
	dispatched Dispatched
}

// kind is a row of the table of errors.
type kind struct {
	status  int
	class   string // error.type
	code    string // error.code
	outcome metrics.Outcome
	retry   retry
}

// retry says whether the same request may succeed later.
type retry uint8

const (
	retryUnsaid  retry = iota // the client may decide
	retryLater                // Retry-After is sent
	retryUseless              // x-should-retry: false is sent
)

// Values of error.type.
const (
	classRequest = "invalid_request_error"
	classBusy    = "requests"
	classServer  = "server_error"
)

// The table of errors. The first column is the code of a Runner's error or a name of ours.
//
//	status, error.type, error.code, outcome in the metrics, retry
var (
	kindQueueFull    = kind{429, classBusy, "queue_full", metrics.OutcomeQueueFull, retryLater}
	kindPrincipal    = kind{429, classBusy, "principal_limit", metrics.OutcomePrincipalLimit, retryLater}
	kindQueueTimeout = kind{503, classServer, "queue_timeout", metrics.OutcomeQueueTimeout, retryLater}
	kindEvicted      = kind{503, classServer, "canceled_by_operator", metrics.OutcomeCanceled, retryUseless}
	kindUnavailable  = kind{503, classServer, "provider_unavailable", metrics.OutcomeUnavailable, retryLater}
	kindNoLeader     = kind{503, classServer, "no_leader", metrics.OutcomeNoLeader, retryLater}
	kindOverloaded   = kind{503, classServer, "overloaded", metrics.OutcomeOverloaded, retryLater}
	kindStopping     = kind{503, classServer, "stopping", metrics.OutcomeStopping, retryLater}
	kindStorage      = kind{503, classServer, "storage_failed", metrics.OutcomeInternal, retryLater}
	kindInternal     = kind{500, classServer, "internal_error", metrics.OutcomeInternal, retryUnsaid}
	kindNoModel      = kind{404, classRequest, "model_not_found", metrics.OutcomeModelNotFound, retryUseless}
	kindTooLong      = kind{400, classRequest, "context_length_exceeded", metrics.OutcomeContextTooLong, retryUseless}
	kindUnsupported  = kind{404, classRequest, "unsupported_by_model", metrics.OutcomeUnsupported, retryUseless}
	kindConflict     = kind{409, classRequest, "in_progress_elsewhere", metrics.OutcomeConflict, retryLater}
	kindKey          = kind{401, classRequest, "invalid_api_key", metrics.OutcomeUnauthorized, retryUseless}
	kindProviderKey  = kind{401, classRequest, "provider_key_required", metrics.OutcomeUnauthorized, retryUseless}
	kindOrigin       = kind{403, classRequest, "forbidden_origin", metrics.OutcomeUnauthorized, retryUseless}
	kindTooLarge     = kind{413, classRequest, "request_too_large", metrics.OutcomeTooLarge, retryUseless}
	kindHeader       = kind{431, classRequest, "too_many_headers", metrics.OutcomeTooLarge, retryUseless}
	kindSlow         = kind{408, classRequest, "request_timeout", metrics.OutcomeClientTimeout, retryUnsaid}
	kindMalformed    = kind{400, classRequest, "invalid_request", metrics.OutcomeMalformed, retryUseless}
	kindJSON         = kind{400, classRequest, "invalid_json", metrics.OutcomeMalformed, retryUseless}
	kindEncoding     = kind{415, classRequest, "unsupported_content_encoding", metrics.OutcomeMalformed, retryUseless}
	kindURL          = kind{404, classRequest, "unknown_url", metrics.OutcomeMalformed, retryUseless}
	kindNoResponse   = kind{404, classRequest, "response_not_found", metrics.OutcomeMalformed, retryUseless}
	kindMethod       = kind{405, classRequest, "method_not_allowed", metrics.OutcomeMalformed, retryUseless}
	kindProvider     = kind{502, classServer, "provider_error", metrics.OutcomeBackendError, retryUnsaid}
	kindProviderLate = kind{504, classServer, "provider_timeout", metrics.OutcomeBackendError, retryUnsaid}
)

// refusals turns the codes of a Runner's errors into rows, with what to tell.
var refusals = map[string]struct {
	kind    kind
	message string
}{
	"queue_full":            {kindQueueFull, "The queue is full. Try again after the time in Retry-After, or ask the operator to raise provider_pool.max_queue or to add capacity."},
	"principal_limit":       {kindPrincipal, "As many of your requests are in progress and wait as may at the same time. Try again after the time in Retry-After, or ask the operator to raise the limits of your principal in openai.principals."},
	"queue_timeout":         {kindQueueTimeout, "The request waited for a free slot until its deadline. Try again later, or ask the operator to raise provider_pool.queue_timeout_ms or to add capacity."},
	"canceled_by_operator":  {kindEvicted, "An operator of this gateway took the request out of the queue. It was not run. Ask the operator why before you send it again."},
	"unavailable":           {kindUnavailable, "No provider of this model is connected and healthy. Try again later; the operator sees the cause with 'iopctl providers list -o wide'."},
	"draining":              {kindUnavailable, "All providers of this model are being drained for maintenance. Try again later."},
	"model_not_found":       {kindNoModel, "The model does not exist. GET /v1/models lists the models there are."},
	"context_too_long":      {kindTooLong, "The input is too long for every provider of this model. Shorten it, or use a model with a longer context."},
	"unsupported":           {kindUnsupported, "No provider of this model can serve this kind of request. Use another model or another route."},
	"in_progress_elsewhere": {kindConflict, "A request with this Idempotency-Key is in progress, or the key was used for a different request that still waits. Wait for its end, or use another key."},
	"abandoned":             {kindQueueTimeout, "The request lost its place in the queue. Send it again."},
	"malformed":             {kindMalformed, "The request's id is not acceptable. Use a shorter Idempotency-Key."},
	"feature_level":         {kindNoLeader, "Not every replica of this gateway can keep responses yet: some run an older version, or have just started. Try again after the time in Retry-After."},
	"store_full":            {kindOverloaded, "As many responses run in the background as can be stored. Try again after the time in Retry-After, or ask the operator to raise responses.max_bytes."},
	"overloaded":            {kindOverloaded, "The gateway's log is behind. Try again after the time in Retry-After."},
	"stopping":              {kindStopping, "This gateway is stopping. Try again after the time in Retry-After; it or another replica will answer."},
	"session_ended":         {kindNoLeader, "This gateway has no contact to its cluster at the moment. Try again after the time in Retry-After."},
	"no_leader":             {kindNoLeader, "This gateway has no contact to its cluster at the moment. Try again after the time in Retry-After."},
	"failed":                {kindStorage, "The gateway can't write its log and accepts no requests until the operator has restored its disk. Try another replica, or again later."},
}

// refusal turns a Runner's error into what the client is told.
func refusal(err error, m *model) *failure {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		if row, ok := refusals[coded.Code()]; ok {
			f := &failure{kind: row.kind, message: row.message, dispatched: DispatchedNo}
			m.direct(f, coded.Code())
			return f
		}
	}
	return &failure{kind: kindInternal, message: "The gateway could not admit the request. The operator finds the cause in its log under this request id.", dispatched: DispatchedNo}
}

// isCanceled tells whether err says no more than that the client left.
func isCanceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// body is the failure in OpenAI's shape, without a line end.
func (f *failure) body(b []byte) []byte {
	b = append(b, `{"error":{"message":`...)
	b = appendQuoted(b, f.message)
	b = append(b, `,"type":`...)
	b = appendQuoted(b, f.class)
	b = append(b, `,"param":`...)
	if f.param == "" {
		b = append(b, "null"...)
	} else {
		b = appendQuoted(b, f.param)
	}
	b = append(b, `,"code":`...)
	return append(appendQuoted(b, f.code), "}}"...)
}

const (
	// leaderAfter is when a cluster without a leader usually has one again.
	leaderAfter = 2 * time.Second
	// placeAfter is when a client whose replica was lost finds its place at another one: a new leader is elected and
	// has not heard of the lost one for session_ttl_ms (3 s). SDKs come twice at most.
	placeAfter = 6 * time.Second
)

// write answers with the failure. after is the estimate for Retry-After; it is kept within what SDKs obey.
func (f *failure) write(w http.ResponseWriter, after time.Duration) {
	h := w.Header()
	switch f.retry {
	case retryLater:
		switch f.code { // these have nothing to do with how fast the queue moves
		case kindNoLeader.code:
			after = leaderAfter
		case kindConflict.code:
			after = placeAfter
		}
		after = min(max(after, time.Second), time.Minute)
		seconds := int((after + time.Second - 1) / time.Second)
		h["Retry-After"] = []string{strconv.Itoa(seconds)}
		h["Retry-After-Ms"] = []string{strconv.FormatInt(after.Milliseconds(), 10)}
	case retryUseless:
		h["X-Should-Retry"] = []string{"false"}
	}
	if f.status == http.StatusUnauthorized {
		h["Www-Authenticate"] = []string{`Bearer realm="iop"`}
	}
	writeJSON(w, f.status, append(f.body(nil), '\n'))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has left is noticed elsewhere
}
