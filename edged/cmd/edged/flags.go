package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"iop/configs"
)

// flags are what the command line says.
type flags struct {
	config  string
	format  string
	level   slog.Level
	version bool
}

const help = `Usage: edged --config FILE [flags]        run the edge
       edged health --config FILE         ask the edge of the file, on this machine, whether it is alive

A file is checked before use by 'iopctl config validate FILE', and made by hand from configs/examples/edge.yaml.

`

// parseFlags reads the command line; the config's path may come from IOP_CONFIG. It has told the user what is wrong
// when it returns an error.
func parseFlags(args []string, stderr io.Writer, env configs.Env) (flags, error) {
	var f flags
	set := flag.NewFlagSet("edged", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.Usage = func() {
		_, _ = io.WriteString(stderr, help) // nobody is left to tell
		set.PrintDefaults()
	}
	set.StringVar(&f.config, "config", "", "edge file (or IOP_CONFIG)")
	set.StringVar(&f.format, "log-format", "text", "text or json")
	set.TextVar(&f.level, "log-level", slog.LevelInfo, "debug, info, warn or error")
	set.BoolVar(&f.version, "version", false, "print the version and exit")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if f.config == "" {
		f.config, _ = env("IOP_CONFIG")
	}
	var wrong string
	switch {
	case set.NArg() > 0:
		wrong = fmt.Sprintf("unexpected argument %q", set.Arg(0))
		if f.config == "" && set.NArg() == 1 && strings.HasSuffix(set.Arg(0), "ml") { // .yaml, .yml
			wrong += "; a file is given as --config " + set.Arg(0)
		}
	case f.format != "text" && f.format != "json":
		wrong = fmt.Sprintf("--log-format must be text or json, not %q", f.format)
	case f.config == "" && !f.version:
		wrong = "no configuration: give --config FILE or set IOP_CONFIG"
	default:
		return f, nil
	}
	_, _ = fmt.Fprintf(stderr, "edged: %s\nedged --help shows the flags\n", wrong) // nobody is left to tell
	return f, errors.New(wrong)
}

// handler writes logs in the chosen form.
func (f flags) handler(w io.Writer) slog.Handler {
	o := &slog.HandlerOptions{Level: f.level}
	if f.format == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}
