// Command licences lists the modules that are linked into binaries, each with its licence's whole text, as those licences
// demand of whoever passes binaries on. It fails if a module has no licence that it knows to be fit for that.
//
//	go run .tools/licences/main.go BINARY... >THIRD_PARTY.txt
package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// module is one of those in the binaries, and where its source is.
type module struct {
	Path, Version, Dir string
	binaries           []string
}

func run(binaries []string, out io.Writer) error {
	modules, err := linked(binaries)
	if err != nil {
		return err
	}
	var faults []error
	var list, texts strings.Builder
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		names, text, err := m.licences()
		if err != nil {
			faults = append(faults, err)
			continue
		}
		fmt.Fprintf(&list, "%-52s %-22s %-14s %s\n", m.Path, m.Version, strings.Join(names, ", "), strings.Join(m.binaries, " "))
		fmt.Fprintf(&texts, "\n%s\n%s %s\n%s\n%s\n", strings.Repeat("=", 100), m.Path, m.Version, strings.Repeat("=", 100), text)
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	_, err = fmt.Fprintf(out, `The programs of iop are linked from its own source (LICENSE), from Go's standard library, and from the modules below.
The source of each, unchanged and in the version named, can be had from a proxy for Go modules: go mod download MODULE@VERSION.

%s%s`, list.String(), texts.String())
	return err
}

// standard stands for what is linked from the Go distribution.
const standard = "std"

// linked reads from the binaries which modules are in them.
func linked(binaries []string) (map[string]*module, error) {
	out := map[string]*module{}
	for _, b := range binaries {
		info, err := buildinfo.ReadFile(b)
		if err != nil {
			return nil, err
		}
		add := func(path, version string) {
			if out[path] == nil {
				out[path] = &module{Path: path, Version: version}
			}
			program, _, _ := strings.Cut(filepath.Base(b), "-")
			if m := out[path]; !slices.Contains(m.binaries, program) {
				m.binaries = append(m.binaries, program)
			}
		}
		add(standard, info.GoVersion)
		for _, d := range info.Deps {
			if d.Replace != nil {
				return nil, fmt.Errorf("%s: %s is replaced by another module: say whose licence is good", b, d.Path)
			}
			add(d.Path, d.Version)
		}
	}
	return out, locate(out)
}

// locate finds the sources, which the go command has since it built from them.
func locate(modules map[string]*module) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		if m.Path == standard {
			m.Dir = strings.TrimSpace(string(root))
			continue
		}
		args = append(args, m.Path+"@"+m.Version)
	}
	text, err := exec.Command("go", args...).Output()
	if err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var m module
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		modules[m.Path].Dir = m.Dir
	}
}

var fileNames = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licences are the names of a module's licences and the texts that go with it.
func (m *module) licences() ([]string, string, error) {
	files, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", m.Path, err)
	}
	var names []string
	var text strings.Builder
	for _, f := range files {
		if f.IsDir() || !fileNames.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(m.Dir, f.Name()))
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintf(&text, "--- %s\n%s\n", f.Name(), strings.TrimSpace(strings.ReplaceAll(string(b), "\r\n", "\n")))
		lower := strings.ToLower(f.Name())
		if strings.HasPrefix(lower, "notice") || strings.HasPrefix(lower, "patents") {
			continue // goes with the licence, is none
		}
		found, err := name(string(b))
		if err != nil {
			return nil, "", fmt.Errorf("%s %s, %s: %w", m.Path, m.Version, f.Name(), err)
		}
		for _, n := range found {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	if len(names) == 0 {
		return nil, "", fmt.Errorf("%s %s has no file with a licence", m.Path, m.Version)
	}
	return names, text.String(), nil
}

// known are sentences that only stand in the licence of that name, blanks and quotes apart.
var known = []struct{ name, sentence string }{
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"MPL-2.0", "mozilla public license, version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted"},
	{"BSD-3-Clause", "may be used to endorse or promote products derived from this software without specific prior written permission"},
	{"BSD-2-Clause", "redistributions in binary form must reproduce the above copyright notice"},
}

// refused are those that would oblige whoever passes on or serves a binary to more than naming them. MPL-2.0 names two of
// them as what it can be combined with, so their titles are looked for, not their names.
var refused = []struct{ name, sentence string }{
	{"GPL", "gnu general public license version"},
	{"LGPL", "gnu lesser general public license version"},
	{"AGPL", "gnu affero general public license version"},
	{"SSPL", "server side public license version"},
	{"BUSL", "business source license 1.1"},
	{"Commons Clause", "commons clause"},
	{"CC BY-NC", "noncommercial"},
}

// name says which licences a text is.
func name(text string) ([]string, error) {
	flat := strings.ToLower(strings.Join(strings.Fields(strings.NewReplacer("*", " ", "//", " ", "#", " ").Replace(text)), " "))
	for _, r := range refused {
		if strings.Contains(flat, r.sentence) {
			return nil, fmt.Errorf("it is under %s, which programs that are passed on as binaries can't have in them", r.name)
		}
	}
	var out []string
	for _, k := range known {
		if !strings.Contains(flat, k.sentence) || slices.Contains(out, k.name) {
			continue
		}
		if k.name == "BSD-2-Clause" && slices.Contains(out, "BSD-3-Clause") {
			continue
		}
		out = append(out, k.name)
	}
	if len(out) == 0 {
		return nil, errors.New("a licence that is not known here: read it, and add it to known or refused in .tools/licences")
	}
	return out, nil
}
