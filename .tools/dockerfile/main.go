// Command dockerfile reads Dockerfiles as BuildKit does and prints, as JSON, what their stages say. It fails on what BuildKit
// would refuse, and on what its linter warns of.
//
//	go run -modfile=.tools/release.mod .tools/dockerfile/main.go FILE
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dockerfile:", err)
		os.Exit(1)
	}
}

// stage is what a stage says, each instruction as it is written, and RUN, USER, ENTRYPOINT and HEALTHCHECK read.
type stage struct {
	Name       string   `json:"name"`
	Base       string   `json:"base"`
	Run        []string `json:"run"`
	Copy       [][]string
	User       string
	Entrypoint []string
	Health     []string
	Env        map[string]string
	Workdir    string
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: dockerfile FILE")
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from
	tree, err := parser.Parse(f)
	if err != nil {
		return err
	}
	var warnings []error
	lint := linter.New(&linter.Config{Warn: func(rule, description, _, message string, at []parser.Range) {
		warnings = append(warnings, fmt.Errorf("%s:%v: %s: %s (%s)", args[0], at, rule, message, description))
	}})
	stages, _, err := instructions.Parse(tree.AST, lint)
	if err != nil {
		return err
	}
	for _, w := range tree.Warnings {
		warnings = append(warnings, errors.New(w.Short))
	}
	if len(warnings) > 0 {
		return errors.Join(warnings...)
	}
	var out []stage
	for _, s := range stages {
		out = append(out, read(s))
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func read(s instructions.Stage) stage {
	out := stage{Name: s.Name, Base: s.BaseName, Env: map[string]string{}}
	for _, c := range s.Commands {
		switch c := c.(type) {
		case *instructions.RunCommand:
			out.Run = append(out.Run, c.CmdLine...)
		case *instructions.CopyCommand:
			out.Copy = append(out.Copy, append([]string{c.From, c.DestPath}, c.SourcePaths...))
		case *instructions.UserCommand:
			out.User = c.User
		case *instructions.WorkdirCommand:
			out.Workdir = c.Path
		case *instructions.EntrypointCommand:
			out.Entrypoint = c.CmdLine
		case *instructions.HealthCheckCommand:
			out.Health = c.Health.Test
		case *instructions.EnvCommand:
			for _, kv := range c.Env {
				out.Env[kv.Key] = kv.Value
			}
		}
	}
	return out
}
