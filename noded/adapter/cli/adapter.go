package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"iop/noded/adapter"
	"iop/noded/adapter/chat"
)

// Config says how a command is run. The zero value of a limit is its default.
type Config struct {
	Command []string // program and arguments; the arguments are templates, see expand
	Prompt  Feed     // how the command gets the prompt; "" is stdin
	Parser  Parser   // how its output is read; "" is text
	Dialect Dialect  // of ParserLines; "" is told from the output
	Fields  *Fields  // of ParserLines and ParserSSE: where the answer is in an object; wins over Dialect

	Env     []string // NAME=value, all that the command sees: see Environment
	Secrets []string // values that no message shows

	Timeout   time.Duration // longest run; 0 is 10 min
	OutputMax int64         // bytes of stdout; 0 is 16 MiB
	Grace     time.Duration // between SIGTERM and SIGKILL; 0 is 2 s
	Scratch   string        // directory in which each run gets its own; made if it is not there

	// Keeper is the command line of a program that calls Keep at once. Unix needs it, Windows does not.
	Keeper []string

	// Allowed are the programs that may be started, each a name that is looked up in PATH or an absolute path. nil: any.
	Allowed []string
}

// Feed is how a command gets the prompt.
type Feed string

// The feeds.
const (
	FeedStdin    Feed = "stdin"
	FeedArgument Feed = "argument"
)

const (
	timeoutDefault   = 10 * time.Minute
	outputMaxDefault = 16 << 20
	graceDefault     = 2 * time.Second
)

// Adapter runs a command per request. It never repeats a run.
type Adapter struct {
	c Config
}

// New returns an adapter for a command. A command that is not there is no error here: it may be installed later, and
// Probe tells. What runs that were killed with their keeper have left in the scratch directory a day ago is removed.
func New(c Config) (*Adapter, error) {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return nil, errors.New("the command is empty")
	}
	if c.Scratch == "" {
		return nil, errors.New("there is no scratch directory")
	}
	if c.Prompt == FeedArgument && !mentions(c.Command[1:], varPrompt) {
		return nil, errors.New("the command takes its prompt as an argument, and none of its arguments has {prompt}")
	}
	if err := keeperNeeded(c.Keeper); err != nil {
		return nil, err
	}
	if c.Timeout <= 0 {
		c.Timeout = timeoutDefault
	}
	if c.OutputMax <= 0 {
		c.OutputMax = outputMaxDefault
	}
	if c.Grace <= 0 {
		c.Grace = graceDefault
	}
	if owned(c.Scratch) == nil {
		sweepDirs(c.Scratch, time.Now())
	}
	return &Adapter{c: c}, nil
}

// Do runs the command for one request: see adapter.Adapter.
func (a *Adapter) Do(ctx context.Context, c *adapter.Call, to adapter.Answer) adapter.End {
	q, p := read(c)
	if p != nil {
		return answer(chat.NewWriter(&chat.Request{Endpoint: chat.Chat}, to, chat.Options{}), p)
	}
	u := &run{a: a, q: q, out: chat.NewWriter(q, to, chat.Options{})}
	ctx, cancel := context.WithTimeout(ctx, a.c.Timeout)
	defer cancel()
	if !c.Deadline.IsZero() {
		bounded, cancel := context.WithDeadline(ctx, c.Deadline)
		defer cancel()
		ctx = bounded
	}
	return u.do(ctx)
}

// answer ends a run with a problem that the client is told in order.
func answer(w *chat.Writer, p *chat.Problem) adapter.End {
	end := adapter.End{Dispatched: adapter.DispatchedYes}
	if broke, err := w.Fail(p); err != nil {
		end.Code, end.Message = adapter.CodeAnswerFailed, err.Error()
	} else if broke {
		end.Code, end.Message = adapter.CodeBackendBroke, p.Message
	}
	return end
}

// read takes a request, or says why an agent can't serve it.
func read(c *adapter.Call) (*chat.Request, *chat.Problem) {
	if path, _, _ := strings.Cut(c.Path, "?"); c.Method != http.MethodPost || path != "/v1/chat/completions" {
		return nil, &chat.Problem{
			Status: http.StatusNotFound, Code: "not_found",
			Message: fmt.Sprintf("a provider that is a command has no %s %s", c.Method, path), Cure: "it serves POST /v1/chat/completions only",
		}
	}
	q, p := chat.Read(c.Path, c.Body)
	if p == nil {
		p = refuse(q)
	}
	return q, p
}

// refuse names what an agent can't do and a client would miss. What only tunes a model (temperature, max_tokens and the
// like) is left out silently: agents have no such settings, and nearly every client sends some.
func refuse(q *chat.Request) *chat.Problem {
	switch {
	case len(q.Tools) > 0 && q.ToolChoice.Mode != "none":
		return unsupported("tools", "an agent uses its own tools and can't call the client's", `leave tools out, set tool_choice to "none", or use another model`)
	case q.N > 1:
		return unsupported("n", "an agent gives one answer", "leave n out and send the request several times")
	case q.Logprobs || q.TopLogprobs > 0:
		return unsupported("logprobs", "an agent tells no probabilities", "leave logprobs out, or use another model")
	}
	for i, m := range q.Messages {
		for _, part := range m.Parts {
			if part.Kind != chat.PartText {
				return unsupported(fmt.Sprintf("messages[%d].content", i), "an agent reads text only", "leave images, audio and files out, or use another model")
			}
		}
	}
	return nil
}

func unsupported(param, message, cure string) *chat.Problem {
	return &chat.Problem{Status: http.StatusBadRequest, Code: "unsupported_parameter", Param: param, Message: message, Cure: cure}
}

// Probe asks whether the command can be run: it is there, and so is room for a run. A path means nothing to it.
func (a *Adapter) Probe(context.Context, string) error {
	if _, err := a.find(); err != nil {
		return err
	}
	dir, err := a.makeDir()
	if err != nil {
		return err
	}
	return os.Remove(dir)
}

// Close does nothing: there is nothing kept between runs.
func (a *Adapter) Close() {}

// Permitted says why the command's program may not be started here: ErrNotListed, wrapped. A program that may be, or that is
// not there yet, is no error.
func (a *Adapter) Permitted() error {
	if _, err := a.permitted(); errors.Is(err, ErrNotListed) {
		return err
	}
	return nil
}

// find looks for the program that may be started.
func (a *Adapter) find() (string, error) {
	path, err := a.permitted()
	if err != nil {
		return "", err
	}
	return path, notShell(path)
}

// makeDir makes the directory of one run.
func (a *Adapter) makeDir() (string, error) {
	if err := os.MkdirAll(a.c.Scratch, 0o700); err != nil {
		return "", fmt.Errorf("make the scratch directory: %w", err)
	}
	if err := owned(a.c.Scratch); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(a.c.Scratch, runDirs)
	if err != nil {
		return "", fmt.Errorf("make a run's directory: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("make a run's directory: %w", err)
	}
	return dir, nil
}
