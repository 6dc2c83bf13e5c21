package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"iop/configs"
	"iop/noded/enroll"
)

const joinHelp = `Usage: noded join --edge URL [--token TOKEN] [--config FILE] [--plaintext]

Makes this machine a node with a join token (iopctl nodes add, iopctl nodes token), and writes the node file, which only this
user can read. A node file that is there is kept beside it; its env and commands stay. If it was cut off, the same command goes on where it was.

Exit codes: 0 joined, 1 the edge could not be reached, 2 bad usage, or it is refused.

`

// join makes this machine a node.
func join(args []string, stdout, stderr io.Writer, env configs.Env) int {
	o := enroll.Options{Env: env}
	set := flag.NewFlagSet("noded join", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&o.Edge, "edge", "", "URL of the edge's openai listener")
	set.StringVar(&o.Token, "token", "", "join token (better: IOP_JOIN_TOKEN, which other users can't see)")
	set.BoolVar(&o.Plaintext, "plaintext", false, "accept that the join token goes to another machine over plain HTTP")
	set.StringVar(&o.Config, "config", "", "node file to write (or IOP_CONFIG; else node.yaml)")
	set.DurationVar(&o.Wait, "wait", 0, "how long an edge that does not answer is asked again (default 1m)")
	set.Usage = func() {
		_, _ = io.WriteString(stderr, joinHelp)
		set.PrintDefaults()
	}
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	if o.Token == "" {
		o.Token, _ = env("IOP_JOIN_TOKEN")
	}
	if o.Config == "" {
		o.Config, _ = env("IOP_CONFIG")
	}
	if o.Config == "" {
		o.Config = "node.yaml"
	}
	switch {
	case set.NArg() > 0:
		return refuse(stderr, fmt.Errorf("noded join: unexpected argument %q", set.Arg(0)))
	case o.Edge == "":
		return refuse(stderr, errors.New("noded join: no edge: give --edge URL"))
	case o.Token == "":
		return refuse(stderr, errors.New("noded join: no join token: give --token or set IOP_JOIN_TOKEN"))
	}
	r, err := enroll.Join(context.Background(), o)
	var no *enroll.Refused
	switch {
	case errors.As(err, &no), errors.Is(err, enroll.ErrPlaintext):
		return refuse(stderr, fmt.Errorf("noded join: %w", err))
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "noded join:", err)
		return exitFailed
	}
	said := fmt.Sprintf("joined as node %s; wrote %s", r.Node, r.Config)
	if r.CA != "" {
		said += "; wrote the edges' authority to " + r.CA
	}
	if r.Old != "" {
		said += "; kept the node file of before as " + r.Old
	}
	if r.ClientCert {
		said += "; the edges ask for a certificate: put node.tls.cert and node.tls.key of 'iopctl certs node " + r.Node + "' into the file"
	}
	return say(stdout, said+"; edges: "+strings.Join(r.Edges, ", ")+"\nit runs with: noded --config "+r.Config)
}
