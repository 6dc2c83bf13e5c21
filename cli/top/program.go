package top

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"iop/edged/adminapi"
)

// Kind is what an explanation is about.
type Kind string

// The kinds.
const (
	KindProvider Kind = "provider"
	KindRequest  Kind = "request"
	KindLease    Kind = "lease"
)

// Options are what the view is of, and where it is shown.
type Options struct {
	// Live calls with each frame until the feed ends, and says why; it is called again to go on. See adminapi.Client.
	Live func(ctx context.Context, fn func(*adminapi.Frame) error) error
	// Explain tells about one thing, in lines for people.
	Explain func(ctx context.Context, kind Kind, id string) (string, error)
	// Drain and Cancel change something.
	Drain  func(ctx context.Context, d adminapi.Drain) error
	Cancel func(ctx context.Context, request string) error

	In  io.Reader // a terminal
	Out io.Writer // a terminal
	Env []string  // KEY=VALUE, of what terminals are told by

	Unicode bool // the terminal shows more than ASCII
	Color   bool // it shows colours, and they are wanted

	Now func() time.Time // nil = the wall clock
}

// Run shows the view until its reader quits or ctx ends. It fails if there is no feed to begin with (then the terminal was not
// touched), or if the terminal fails. When it returns, the terminal is as it was and nothing runs any more.
func Run(ctx context.Context, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	f := &feed{live: o.Live, now: o.Now, news: make(chan any)}
	working.Go(func() { f.run(ctx) })
	var first *still
	switch n := f.next(ctx).(type) {
	case *still:
		first = n
	case *lost:
		return n.err
	case nil:
		return nil // ended before anything was there
	}
	m := newModel(&o, first)
	p := tea.NewProgram(m, o.program()...)
	m.start = func(do func(context.Context) tea.Msg) {
		working.Go(func() { p.Send(do(ctx)) })
	}
	working.Go(func() { f.deliver(ctx, p.Send) })
	working.Go(func() { tick(ctx, p.Send) })
	working.Go(func() { <-ctx.Done(); p.Quit() })
	if _, err := p.Run(); err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	return nil
}

// frames a second at most: enough for keys to feel prompt.
const frameRate = 30

func (o *Options) program() []tea.ProgramOption {
	options := []tea.ProgramOption{
		tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env), tea.WithFPS(frameRate),
		tea.WithoutSignalHandler(), // signals end ctx
	}
	if !o.Color {
		options = append(options, tea.WithColorProfile(colorprofile.Ascii)) // bold and reverse are no colours
	}
	return options
}

// tickMsg: a second has passed, so ages are others.
type tickMsg struct{}

func tick(ctx context.Context, send func(tea.Msg)) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			send(tickMsg{})
		case <-ctx.Done():
			return
		}
	}
}
