package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"iop/configs"
	"iop/noded"
)

const checkHelp = `Usage: noded check --config FILE [-o table|json]

Asks every edge of the file whether it would take this node (network, TLS, protocol, token), and every backend that the edge
names whether it answers. Nothing is changed by it, and a noded of the same name that is running is not disturbed.

Exit codes: 0 all is well, 1 something is not, 2 bad usage or a bad configuration.

`

// checkWait bounds a whole check.
const checkWait = 30 * time.Second

// check asks the edges and the backends, and shows what they say.
func check(args []string, stdout, stderr io.Writer, env configs.Env) int {
	var file, output string
	set := flag.NewFlagSet("noded check", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&file, "config", "", "node file (or IOP_CONFIG)")
	set.StringVar(&output, "o", "table", "table or json")
	set.Usage = func() {
		_, _ = io.WriteString(stderr, checkHelp)
		set.PrintDefaults()
	}
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	if file == "" {
		file, _ = env("IOP_CONFIG")
	}
	switch {
	case set.NArg() > 0:
		return refuse(stderr, fmt.Errorf("noded check: unexpected argument %q", set.Arg(0)))
	case output != "table" && output != "json":
		return refuse(stderr, fmt.Errorf("noded check: -o must be table or json, not %q", output))
	case file == "":
		return refuse(stderr, errors.New("noded check: no configuration: give --config FILE or set IOP_CONFIG"))
	}
	config, _, err := configs.LoadNode(file, env)
	if err != nil {
		return refuse(stderr, err)
	}
	d, err := noded.New(noded.Options{Config: config, Version: version(), Env: env})
	if err != nil {
		return refuse(stderr, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkWait)
	defer cancel()
	report := d.Check(ctx)
	if err := showCheck(stdout, report, output); err != nil || !report.OK {
		return exitFailed
	}
	return exitOK
}

func showCheck(w io.Writer, r *noded.CheckReport, output string) error {
	if output == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "node %s, noded %s, %s\ncommands: %s\n\n", r.Node, r.Version, r.Platform, commandsText(r.Commands))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "EDGE\tRESULT\tID\tVERSION\tPROTOCOL\tREVISION\tCLOCK\tLINKED")
	for _, e := range r.Edges {
		if !e.OK {
			_, _ = fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\t-\t-\n", e.Address, e.Code)
			continue
		}
		_, _ = fmt.Fprintf(t, "%s\tok\t%s\t%s\t%d\t%d\t%+dms\t%s\n", e.Address, e.Edge, orDash(e.Version), e.Protocol, e.Revision, e.SkewMS, yesNo(e.Connected))
	}
	if len(r.Providers) > 0 {
		_, _ = fmt.Fprintln(t, "\nPROVIDER\tRESULT\tTYPE\tADAPTER\tAT\tTOOK")
	}
	for _, p := range r.Providers {
		result := "ok"
		if !p.OK {
			result = p.Code
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%dms\n", orDash(p.Provider), result, orDash(p.Type), orDash(p.Adapter), orDash(p.At), p.TookMS)
	}
	_ = t.Flush()
	for _, e := range r.Edges {
		tell(&b, e.Address, e.Failure)
	}
	for _, p := range r.Providers {
		tell(&b, p.Provider, p.Failure)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// commandsText says which programs the edges may have started here.
func commandsText(list []string) string {
	switch {
	case list == nil:
		return "any that the edge's configuration names (list them under commands: in the node file)"
	case len(list) == 0:
		return "none"
	}
	return strings.Join(list, ", ")
}

// tell adds what was wrong with one of them, and the cure.
func tell(b *strings.Builder, name string, f noded.Failure) {
	if f.Code != "" {
		fmt.Fprintf(b, "\n%s: %s\n  cure: %s\n", name, f.Cause, f.Cure)
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
