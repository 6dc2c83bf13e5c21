package chat

import "net/http"

// Problem is an error in OpenAI's shape.
type Problem struct {
	Status  int    // HTTP status; 0 is 500
	Code    string // error.code, stable: invalid_value; "" is null
	Type    string // error.type; "" is what belongs to the status
	Param   string // error.param: messages[0].content; "" is null
	Message string // what is wrong, for people
	Cure    string // what to do about it, added to the message; may be ""
}

// Error gives the message with its cure.
func (p *Problem) Error() string {
	if p.Cure == "" {
		return p.Message
	}
	return p.Message + "; " + p.Cure
}

// kind is the error.type.
func (p *Problem) kind() string {
	switch {
	case p.Type != "":
		return p.Type
	case p.Status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case p.Status >= 400 && p.Status < 500:
		return "invalid_request_error"
	default:
		return "server_error"
	}
}

type problemShape struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// JSON is the body of an error answer.
func (p *Problem) JSON() []byte {
	s := problemShape{Message: p.Error(), Type: p.kind()}
	if p.Param != "" {
		s.Param = &p.Param
	}
	if p.Code != "" {
		s.Code = &p.Code
	}
	return mustJSON(map[string]problemShape{"error": s})
}

// Answer sends the problem as an answer of its own.
func (p *Problem) Answer(a Answer) error {
	status := p.Status
	if status == 0 {
		status = http.StatusInternalServerError
	}
	return answerJSON(a, status, p.JSON())
}
