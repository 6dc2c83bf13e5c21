package anthropic

import (
	"encoding/json"
	"net/http"
)

// ErrorType is the type of an error that is told with an HTTP status.
func ErrorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// AppendError appends an error in Anthropic's shape, without a line end. code is ours, beside the type; it and the id of
// the request may be empty.
func AppendError(b []byte, status int, code, message, requestID string) []byte {
	b = append(b, `{"type":"error","error":{"type":"`...)
	b = append(append(b, ErrorType(status)...), `","message":`...)
	b = quote(b, message)
	if code != "" {
		b = quote(append(b, `,"code":`...), code)
	}
	b = append(b, '}')
	if requestID != "" {
		b = quote(append(b, `,"request_id":`...), requestID)
	}
	return append(b, '}')
}

// FromChat turns an error of chat's shape into Anthropic's. An error that is in Anthropic's shape stays as it is.
func FromChat(body []byte, status int, requestID string) []byte {
	var e struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
		Flat  string          `json:"message"` // older vLLM
	}
	message := "The provider answered with an error that can't be read."
	var code string
	if json.Unmarshal(body, &e) == nil {
		switch {
		case e.Type == "error":
			return body
		case len(e.Error) > 0:
			message = theirs(e.Error)
			var inner struct {
				Code any `json:"code"`
			}
			_ = json.Unmarshal(e.Error, &inner) // a text has none
			code, _ = inner.Code.(string)
		case e.Flat != "":
			message = e.Flat
		}
	}
	return AppendError(nil, status, code, message, requestID)
}
