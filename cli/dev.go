package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// DevOptions are the flags of iopctl dev.
type DevOptions struct {
	DataDir   string   // where log, snapshots and configuration are kept; "" = a per-user cache directory
	Port      int      // of the OpenAI API on 127.0.0.1; 0 = a free one
	AdminPort int      // of the admin listener on 127.0.0.1; 0 = a free one
	Detect    bool     // look for local backends and add them
	Backends  []string // base URLs of others that have to answer, up to and with /v1
	LogLevel  string   // debug, info, warn, error
	Stdout    io.Writer
	Stderr    io.Writer
}

func newDev(run func(context.Context, DevOptions) error) *cobra.Command {
	var o DevOptions
	var noDetect bool
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole gateway in this process, with a demo backend",
		Long: `Run an edge, a node and a demo provider in this process, to try things out. If an Ollama, llama.cpp, vLLM or LM Studio
answers on its usual port on this machine, its models are added; --backend names another place, which has to answer. Ctrl-C stops it, letting running requests end; a second
one stops it at once.`,
		Example: `  iopctl dev
  iopctl dev --backend http://gpu.lan:8000/v1 --port 0`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return usage(c, err)
			}
			o.Detect = !noDetect
			o.Stdout, o.Stderr = c.OutOrStdout(), c.ErrOrStderr()
			return run(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.DataDir, "data-dir", "", "`directory` for log, snapshots and the configuration that it writes (default: per-user cache)")
	f.IntVar(&o.Port, "port", 8080, "`port` of the OpenAI API, 0 = a free one")
	f.IntVar(&o.AdminPort, "admin-port", 9080, "`port` of the admin listener, 0 = a free one")
	f.BoolVar(&noDetect, "no-detect", false, "don't look for local backends")
	f.StringSliceVar(&o.Backends, "backend", nil, "base `URL` of an OpenAI-compatible server to add, as http://127.0.0.1:8000/v1; can be repeated")
	f.StringVar(&o.LogLevel, "log-level", "warn", "`level` of the log: debug, info, warn or error")
	_ = c.MarkFlagDirname("data-dir") // the flag just made
	_ = c.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *DevOptions) check() error {
	for i, b := range o.Backends {
		u, err := url.Parse(b)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return fmt.Errorf("--backend %q is not a URL as http://127.0.0.1:8000/v1", b)
		}
		o.Backends[i] = strings.TrimRight(b, "/")
	}
	for _, port := range []int{o.Port, o.AdminPort} {
		if port < 0 || port > 65535 {
			return fmt.Errorf("%d is not a port: it is 0 to 65535", port)
		}
	}
	if o.Port == o.AdminPort && o.Port != 0 {
		return fmt.Errorf("port %d can't serve both the OpenAI API and the admin listener", o.Port)
	}
	return nil
}
