package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

// edgeDefault is the edge that is asked if none is named.
const edgeDefault = "127.0.0.1:9080"

// globals are the flags that all commands have.
type globals struct {
	env     func(string) (string, bool)
	edges   []string
	token   string
	ca      string
	output  string
	timeout time.Duration
	noColor bool
}

func (g *globals) register(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringSliceVar(&g.edges, "edge", nil, "admin `address` of an edge, HOST:PORT; repeat it to name others that are asked if\n"+
		"one doesn't answer (env IOP_EDGE, default "+edgeDefault+")")
	f.StringVar(&g.token, "token", "", "admin `token` (better: env IOP_TOKEN, which other users can't see)")
	f.StringVar(&g.ca, "ca", "", "`file` of the authority that signed the edges' certificates; with it edges are asked over TLS (env IOP_CA)")
	f.StringVarP(&g.output, "output", "o", "table", "`format`: table, wide, json or yaml")
	f.DurationVar(&g.timeout, "timeout", 5*time.Second, "how long a call may take, 0 = as long as it wants")
	f.BoolVar(&g.noColor, "no-color", false, "no colours, on a terminal too (env NO_COLOR)")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return g.check(c) }
	// The names are those of flags just made, so there is nothing that could fail.
	_ = root.MarkPersistentFlagFilename("ca", "pem", "crt", "cer")
	for _, name := range []string{"edge", "token", "timeout"} {
		_ = root.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
}

func formats() []string { return []string{"table", "wide", "json", "yaml"} }

func (g *globals) check(c *cobra.Command) error {
	if g.output == "text" { // what others call it
		g.output = "table"
	}
	if _, ok := c.Annotations[annotationCSV]; ok && g.output == formatCSV {
		return nil
	}
	if !slices.Contains(formats(), g.output) {
		return usage(c, fmt.Errorf("unknown output format %q: it is one of %s", g.output, strings.Join(formats(), ", ")))
	}
	if g.timeout < 0 {
		return usage(c, fmt.Errorf("--timeout %s is negative", g.timeout))
	}
	return nil
}

// client makes a client for the edges that flags or environment name.
func (g *globals) client(c *cobra.Command) (*adminapi.Client, error) {
	return g.clientOf(c, g.addresses()...)
}

// addresses are those of the edges that flags or environment name.
func (g *globals) addresses() []string {
	if len(g.edges) > 0 {
		return g.edges
	}
	if named := strings.FieldsFunc(g.lookup("IOP_EDGE"), func(r rune) bool { return r == ',' || r == ' ' }); len(named) > 0 {
		return named
	}
	return []string{edgeDefault}
}

// clientOf makes a client for edges at the addresses.
func (g *globals) clientOf(c *cobra.Command, addresses ...string) (*adminapi.Client, error) {
	o := adminapi.ClientOptions{Addresses: addresses, Token: g.token, Operator: g.operator(), Timeout: g.timeout}
	if o.Token == "" {
		o.Token = g.lookup("IOP_TOKEN")
	}
	if err := g.secure(&o); err != nil {
		return nil, usage(c, err)
	}
	client, err := adminapi.NewClient(o)
	if err != nil {
		return nil, usage(c, err)
	}
	return client, nil
}

// secure makes the client speak TLS if an authority is named. A URL keeps the scheme that it has.
func (g *globals) secure(o *adminapi.ClientOptions) error {
	file := g.ca
	if file == "" {
		file = g.lookup("IOP_CA")
	}
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("read the authority: %s holds no certificate in PEM form", file)
	}
	o.Transport = &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}
	o.Addresses = slices.Clone(o.Addresses)
	for i, a := range o.Addresses {
		if strings.Contains(a, "://") {
			continue
		}
		at, err := adminapi.HostPort(a)
		if err != nil {
			return err
		}
		o.Addresses[i] = "https://" + at
	}
	return nil
}

func (g *globals) lookup(name string) string {
	v, _ := g.env(name)
	return v
}
