package cli

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"iop/cli/top"
	"iop/edged/adminapi"
)

// topOptions are the flags of top.
type topOptions struct {
	every time.Duration
	once  bool
}

func newTop(g *globals) *cobra.Command {
	var o topOptions
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch providers, queue and leases live; sort, filter, explain, drain, cancel",
		Long: `Watch an edge live on the whole terminal: what providers have in flight of what they may, the queue in its order and what each
request waits for, the leases, requests and tokens per second, and how long one waits. Keys sort, filter, explain what the cursor
is at, drain a provider or node and cancel a waiter (both ask first); ? shows them all.

It goes on when the edge restarts, and at another edge if several are named; until then it says that its numbers are old.
With -o json or yaml, or --once, it shows one picture and ends; else it wants a terminal.`,
		Example: `  iopctl top --edge gw1:9080 --edge gw2:9080
  iopctl top --once
  iopctl top -o json | jq '.waiters | length'`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error { return g.top(c, &o) },
	}
	f := c.Flags()
	f.DurationVar(&o.every, "every", time.Second, "how often the picture is renewed: 250ms to 10s")
	f.BoolVar(&o.once, "once", false, "show one picture, with all its rows, and end")
	return c
}

func (g *globals) top(c *cobra.Command, o *topOptions) error {
	if err := checkEvery(o.every); err != nil {
		return usage(c, err)
	}
	once := o.once || g.output == "json" || g.output == "yaml"
	if !once {
		if err := g.screened(c); err != nil {
			return err
		}
	}
	client, err := g.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	if once {
		return g.topOnce(c, client, o.every)
	}
	return top.Run(c.Context(), top.Options{
		Live: func(ctx context.Context, fn func(*adminapi.Frame) error) error { return client.Live(ctx, o.every, fn) },
		Explain: func(ctx context.Context, kind top.Kind, id string) (string, error) {
			return explained(ctx, client, kind, id)
		},
		Drain: func(ctx context.Context, d adminapi.Drain) error {
			_, err := client.Drain(ctx, d)
			return err
		},
		Cancel: func(ctx context.Context, request string) error {
			_, err := client.CancelWaiter(ctx, request)
			return err
		},
		In: c.InOrStdin(), Out: c.OutOrStdout(), Env: g.terminal(), Unicode: g.unicode(),
		Color: !g.noColor && g.lookup("NO_COLOR") == "",
	})
}

// screened tells whether there is a terminal that top can be shown on.
func (g *globals) screened(c *cobra.Command) error {
	what := ""
	switch {
	case !onTerminal(c.OutOrStdout()):
		what = "the output is not a terminal"
	case !onTerminal(c.InOrStdin()):
		what = "the input is not a terminal"
	case g.lookup("TERM") == "dumb" || g.lookup("TERM") == "" && runtime.GOOS != "windows":
		what = "the terminal can't be drawn on (TERM is dumb or not set)"
	default:
		return nil
	}
	return &faultError{
		code: ExitUsage, err: errors.New("top: " + what),
		cure: "'iopctl top --once' or 'iopctl top -o json' shows one picture; or use 'iopctl status', 'iopctl queue list'",
	}
}

// onTerminal is stricter than isTerminal, for which /dev/null is one.
func onTerminal(x any) bool {
	f, ok := x.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// terminal is what of the environment says how the terminal is.
func (g *globals) terminal() []string {
	var env []string
	for _, name := range []string{
		"TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TMUX", "SSH_TTY",
		"SSH_CONNECTION", "WT_SESSION", "ConEmuANSI", "ANSICON", "COLUMNS", "LINES",
	} {
		if v, ok := g.env(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// unicode tells whether the locale is one of UTF-8. Windows has none in its environment, and its terminals show Unicode.
func (g *globals) unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(g.lookup(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return runtime.GOOS == "windows"
}

// explained is what requests explain, leases inspect or providers show print.
func explained(ctx context.Context, client *adminapi.Client, kind top.Kind, id string) (string, error) {
	var p page
	switch kind {
	case top.KindProvider:
		d, err := client.Provider(ctx, id)
		if err != nil {
			return "", err
		}
		showProvider(&p, d)
	case top.KindLease:
		l, err := client.Lease(ctx, id, adminapi.Moment{})
		if err != nil {
			return "", err
		}
		showLease(&p, l)
	case top.KindRequest:
		r, err := client.Request(ctx, id, adminapi.Moment{})
		if err != nil {
			return "", err
		}
		showRequest(&p, r)
	}
	return p.text.String(), nil
}
