package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"iop/noded/adapter"
	"iop/noded/adapter/chat"
)

// run is one request at the command.
type run struct {
	a     *Adapter
	q     *chat.Request
	out   *chat.Writer
	reply *reply
	parse decoder
	errs  tail // the end of stderr
}

// do runs the command and renders what it says. It returns when all of its processes are gone.
func (u *run) do(ctx context.Context) adapter.End {
	u.reply = &reply{out: u.out, stop: stopper{sequences: u.q.Stop}}
	u.parse = newDecoder(&u.a.c, u.reply)
	program, err := u.a.find()
	if err != nil {
		return notRun(err)
	}
	dir, err := u.a.makeDir()
	if err != nil {
		return notRun(err)
	}
	defer removeDir(dir)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return adapter.End{Dispatched: adapter.DispatchedNo, Code: adapter.CodeBackendTimeout, Message: "the time was up before the command was started"}
	case ctx.Err() != nil:
		return adapter.End{Dispatched: adapter.DispatchedNo, Code: adapter.CodeCanceled, Message: "canceled before the command was started"}
	}
	p := compose(u.q, u.a.c.Command[1:])
	args, err := u.arguments(p, dir)
	if err != nil {
		return notRun(err)
	}
	// No system can pass it on. Found out by starting, it would look like a command that is not there, and a client could
	// have the provider taken for broken.
	if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "\x00") }) {
		return answer(u.out, zeroByte())
	}
	proc, err := start(launch{
		program: program, args: args, env: u.a.c.Env, dir: dir, id: rand.Text(), grace: u.a.c.Grace, keeper: u.a.c.Keeper,
	})
	switch {
	case errors.Is(err, errTooLong):
		return answer(u.out, tooLong())
	case err != nil:
		return notRun(err)
	}
	if u.a.c.Prompt == FeedArgument {
		p.text = ""
	}
	x, fault := u.converse(ctx, proc, p.text)
	return u.end(ctx, fault, x)
}

// notRun is the end of a run whose command was not started.
func notRun(err error) adapter.End {
	return adapter.End{Dispatched: adapter.DispatchedNo, Code: adapter.CodeConnectFailed, Message: err.Error()}
}

func tooLong() *chat.Problem {
	return &chat.Problem{
		Status: http.StatusBadRequest, Code: "context_length_exceeded", Param: "messages",
		Message: "the prompt is too long for an argument of this provider's command",
		Cure:    "shorten it, or have the operator set prompt: stdin for the adapter",
	}
}

func zeroByte() *chat.Problem {
	return &chat.Problem{
		Status: http.StatusBadRequest, Code: "invalid_value", Param: "messages",
		Message: "the text has the character U+0000, which no argument of this provider's command can have", Cure: "leave it out",
	}
}

// arguments fills the command's arguments.
func (u *run) arguments(p prompt, dir string) ([]string, error) {
	v := values{prompt: p.text, model: u.q.Model, system: p.system, dir: dir, schema: p.schema}
	if p.schema != "" && mentions(u.a.c.Command[1:], varSchemaFile) {
		v.schemaFile = filepath.Join(dir, "schema.json")
		if err := os.WriteFile(v.schemaFile, []byte(p.schema), 0o600); err != nil {
			return nil, fmt.Errorf("write the schema: %w", err)
		}
	}
	return expand(u.a.c.Command[1:], v), nil
}

// converse feeds the command, reads it to its end and waits for all of its processes. The fault is what cut it short.
func (u *run) converse(ctx context.Context, p *process, prompt string) (x exit, fault error) {
	defer p.close()
	defer context.AfterFunc(ctx, p.stop)()
	var beside sync.WaitGroup
	beside.Go(func() { p.feed(prompt) })
	beside.Go(func() { u.errs.read(p.stderr) })
	// Beside the reading: should the keeper be killed, the output only ends when wait has swept up what still writes.
	beside.Go(func() { x = p.wait() })
	fault = u.read(p.stdout)
	if fault != nil {
		p.stop()
		_ = p.stdout.Close() // whoever writes on meets a broken pipe
	}
	beside.Wait()
	if fault == nil {
		fault = u.parse.end()
	}
	return x, fault
}

// readSize is what is read of an output at once.
const readSize = 32 << 10

// read takes the output until it ends, or until something in it or at the client's end cuts it short.
func (u *run) read(stdout io.Reader) error {
	buf := make([]byte, readSize)
	var total int64
	for {
		n, err := stdout.Read(buf)
		if total += int64(n); total > u.a.c.OutputMax {
			return errOutputMax
		}
		if n > 0 {
			if err := u.parse.feed(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return nil // the pipe's end; nothing else can go wrong with it
		}
	}
}
