package backend

import (
	"net/http"
	"time"
)

// Stage is a point in the life of a run.
type Stage int

// The stages. The zero value is none of them.
const (
	Nowhere     Stage = iota
	BeforeHead        // nothing has been sent
	AfterHead         // status and headers are out, no token yet
	AfterTokens       // Plan.At tokens are out
)

// Plan says how a request is answered. The zero value answers at once with three tokens.
type Plan struct {
	Tokens int           // how many tokens; 0 = 3, negative = none
	Text   []string      // the tokens themselves, instead of counted ones
	First  time.Duration // before the first token
	Pace   time.Duration // between tokens

	Hold Stage // the run waits there until Let or LetTag
	Drop Stage // the connection is reset there
	At   int   // tokens before AfterTokens

	Never bool // not one byte is sent; the run ends when the caller leaves
	// Deaf keeps the run counted until Let even if the caller leaves: a backend that does not notice an abort.
	Deaf bool

	Status int         // 0 = 200; else the answer is Body, or an error in OpenAI's shape
	Header http.Header // added to the answer
	Body   []byte      // of an answer with Status
	NotRun bool        // the answer says that nothing ran: it is not counted as a run (Hold BeforeHead works)

	SlowHead time.Duration // pause after each byte of status line and headers
	Split    int           // at most that many bytes per write, each flushed; 0 = one frame per write
	CutAt    int           // the body is written in two pieces, the first that long, with a pause between
	Huge     int           // the text is that many bytes long in one token, instead of Tokens
	Raw      []byte        // these exact bytes go to the socket, status line and all, then the connection closes
	Usage    bool          // a last chunk with usage, or usage in a plain answer
	Comments bool          // SSE comments and CR LF between frames
}

// Busy is the answer of a server that is loading or full and ran nothing.
func Busy() Plan {
	return Plan{
		Status: http.StatusServiceUnavailable, NotRun: true,
		Body: []byte(`{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`),
	}
}

func (p *Plan) tokens() []string {
	if p.Text != nil {
		return p.Text
	}
	if p.Huge > 0 {
		return []string{huge(p.Huge)}
	}
	n := p.Tokens
	if n == 0 {
		n = 3
	}
	out := make([]string, 0, max(n, 0))
	for i := 1; i <= n; i++ {
		out = append(out, " "+itoa(i))
	}
	return out
}
