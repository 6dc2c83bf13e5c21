package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// arrows are who may import whom, of ours: room to rooms. A parent may import its children, which a rule names with
// /...; nobody imports e2e. A room that is not here has no place yet.
var arrows = map[string][]string{
	"fsm":                    {},
	"configs":                {},
	"proto/nodepb":           {},
	"proto/recordpb":         {},
	"proto/peerpb":           {},
	"proto/spans":            {},
	"storage":                {"fsm", "proto/recordpb"},
	"edged/metrics":          {},
	"edged/adminapi":         {},
	"edged/dashboard":        {},
	"edged/pulse":            {},
	"edged/bootstrap":        {},
	"edged/strangers":        {},
	"edged/openai":           {"fsm", "edged/metrics", "edged/openai/respond", "edged/openai/anthropic", "proto/spans"},
	"edged/openai/respond":   {"edged/openai/pieces"},
	"edged/openai/anthropic": {"edged/openai/pieces"},
	"edged/openai/pieces":    {},
	"edged/admission":        {"fsm", "edged/metrics"},
	"edged/refresh":          {"fsm", "configs", "edged/adminapi", "edged/metrics"},
	"edged/nodelink":         {"fsm", "proto/nodepb", "edged/metrics", "edged/strangers"},
	"edged/peerlink":         {"proto/peerpb", "edged/metrics", "edged/strangers"},
	"edged/admin":            {"fsm", "configs", "edged/adminapi", "edged/metrics"},
	"edged":                  {"edged/...", "storage", "fsm", "configs", "proto/nodepb", "proto/spans"},
	"edged/cmd/edged":        {"edged", "configs"},
	"noded/gate":             {},
	"noded/adapter":          {},
	"noded/adapter/chat":     {},
	"noded/adapter/ollama":   {"noded/adapter", "noded/adapter/chat", "noded/adapter/ollama/recorded"},
	"noded/adapter/demo":     {"noded/adapter", "noded/adapter/chat"},
	"noded/adapter/cli":      {"noded/adapter", "noded/adapter/chat"},
	"noded/edgelink":         {"proto/nodepb"},
	"noded":                  {"noded/...", "configs", "proto/nodepb", "proto/spans"},
	"noded/service":          {},
	"noded/enroll":           {"configs"},
	"noded/cmd/noded":        {"noded", "noded/service", "noded/enroll", "configs"},
	"cli/top":                {"edged/adminapi", "cli/top/terminal"}, // the terminal in tests only
	"cli/top/terminal":       {},
	"cli":                    {"cli/top", "configs", "edged/adminapi", "edged/refresh", "storage", "fsm"},
	"cli/cmd/iopctl":         {"cli", "configs", "edged/adminapi", "storage", "fsm", "edged", "noded"},
	"e2e":                    {"..."},
	"e2e/backend":            {"..."},
	"e2e/cut":                {"..."},
	"e2e/otlp":               {"..."},
	"e2e/sim":                {"..."},
	"e2e/wire":               {"..."},
	"e2e/packages":           {"..."},

	"e2e/backend/talk":              {"..."},
	"noded/adapter/ollama/recorded": {}, // what tests replay
}

// homes are which rooms may import a module of others, by the longest prefix that fits. A tilde stands for the tests of
// every room, and of e2e all; before a room, for the tests of that one.
var homes = map[string][]string{
	"github.com/spf13/cobra": {"cli", "cli/cmd/iopctl", "edged/cmd/edged", "noded/cmd/noded"},
	"github.com/spf13/pflag": {"cli"}, // what cobra reads flags with
	"github.com/hashicorp":   {"storage"},
	"go.etcd.io/bbolt":       {"storage"},
	// storage: a benchmark asks etcd for leases. Its own client would be one more module for all.
	"google.golang.org/grpc":              {"edged/nodelink", "edged/peerlink", "noded/edgelink", "proto/nodepb", "proto/peerpb", "proto/spans", "e2e/otlp", "~storage"},
	"google.golang.org/protobuf":          {"proto/nodepb", "proto/peerpb", "proto/recordpb", "storage", "edged", "edged/nodelink", "edged/peerlink", "noded", "noded/edgelink", "e2e/otlp"},
	"go.opentelemetry.io/otel":            {"proto/spans"},
	"go.opentelemetry.io/proto/otlp":      {"e2e/otlp"},
	"github.com/prometheus/client_golang": {"edged/metrics"},
	"github.com/prometheus/client_model":  {"edged/metrics"},
	"go.yaml.in/yaml/v3":                  {"configs"},
	// e2e: its Linux tests stand between a process and its disk (seccomp), for which syscall has too little.
	"golang.org/x/sys": {"storage", "noded", "noded/adapter", "noded/adapter/cli", "noded/service", "edged/cmd/edged", "noded/cmd/noded", "cli", "e2e"},
	// A view over the whole terminal: input of all terminals and the least difference to the screen are their own trade.
	"charm.land":                            {"cli/top"},
	"github.com/charmbracelet":              {"cli/top"},
	"github.com/charmbracelet/x/term":       {"cli/top", "cli/top/terminal", "cli"},
	"github.com/charmbracelet/x/vt":         {"cli/top/terminal"},
	"github.com/creack/pty":                 {"cli/top/terminal", "~"},
	"github.com/google/go-cmp":              {"~"},
	"github.com/rogpeppe/go-internal":       {"~"},
	"go.uber.org/goleak":                    {"~"},
	"pgregory.net/rapid":                    {"~"},
	"github.com/anishathalye/porcupine":     {"~"},
	"github.com/openai/openai-go":           {"~"},
	"github.com/santhosh-tekuri/jsonschema": {"~"},
	"github.com/chromedp":                   {"~"},
}

func TestImportsFollowTheArrows(t *testing.T) {
	for _, f := range tree(t) {
		if _, ok := arrows[f.room]; !ok {
			t.Errorf("%s: the room %s is not on the plan. Put the file into the room of its subject (docs/WHERE.md); if it is a new room, "+
				"add it to arrows in e2e/imports_test.go with what it may import, and to docs/ARCHITECTURE.md", f.path, f.room)
			continue
		}
		for _, path := range f.imports {
			if fault := wrongImport(f.room, f.isTest, path); fault != "" {
				t.Errorf("%s imports %s: %s", f.path, path, fault)
			}
		}
	}
}

// wrongImport gives the fault of an import with its cure, or nothing.
func wrongImport(room string, isTest bool, path string) string {
	if target, ours := strings.CutPrefix(path, "iop/"); ours {
		return wrongArrow(room, isTest, target)
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for home := path; home != ""; home = home[:max(strings.LastIndex(home, "/"), 0)] {
		rooms, known := homes[home]
		switch {
		case !known:
			continue
		case slices.Contains(rooms, room), slices.Contains(rooms, "~") && (isTest || inside(room, "e2e")):
			return ""
		case slices.Contains(rooms, "~"+room) && isTest:
			return ""
		case slices.Contains(rooms, "~"):
			return "it is for tests only; use the standard library"
		}
		return fmt.Sprintf("only %s may. State what you need as a small interface of std types in %s, and let the room that may implement it",
			strings.Join(rooms, ", "), room)
	}
	return "no room may. If the module is worth its weight, say in homes (e2e/imports_test.go) which room has it to itself"
}

func wrongArrow(room string, isTest bool, target string) string {
	allowed := arrows[room]
	switch {
	case isTest && target == room: // an external test
		return ""
	case slices.ContainsFunc(allowed, func(a string) bool { return matches(a, target) }):
		return ""
	case inside(target, "e2e"):
		return "nobody imports e2e. Move what is shared to the room that it is about"
	case len(allowed) == 0:
		return fmt.Sprintf("%s imports nothing of ours. Move the deciding there and the joining to a parent, or pass the value in", room)
	}
	return fmt.Sprintf("%s may import %s. State the interface that you need in %s and let the parent join the two (edged/daemon.go, noded/daemon.go)",
		room, strings.Join(allowed, ", "), room)
}

// matches tells whether a rule allows a target: the room itself, or with /... everything below it.
func matches(rule, target string) bool {
	if rule == "..." {
		return true
	}
	if parent, ok := strings.CutSuffix(rule, "/..."); ok {
		return strings.HasPrefix(target, parent+"/")
	}
	return rule == target
}

func inside(room, top string) bool { return room == top || strings.HasPrefix(room, top+"/") }

// A policy that lets everything pass would go unnoticed.
func TestImportPolicyRefuses(t *testing.T) {
	for _, c := range []struct {
		room, path string
		isTest     bool
		want       string // part of the fault; empty: allowed
	}{
		{"fsm", "sort", false, ""},
		{"fsm", "iop/configs", false, "imports nothing of ours"},
		{"fsm", "pgregory.net/rapid", true, ""},
		{"fsm", "pgregory.net/rapid", false, "for tests only"},
		{"fsm", "iop/fsm", true, ""},
		{"edged/openai", "iop/edged/admission", false, "let the parent join"},
		{"edged/openai", "iop/configs", false, "may import fsm, edged/metrics"},
		{"edged", "iop/edged/openai", false, ""},
		{"edged", "iop/noded", false, "may import"},
		{"edged", "go.etcd.io/bbolt", false, "only storage may"},
		{"storage", "github.com/hashicorp/raft-boltdb/v2", false, ""},
		{"noded/adapter", "google.golang.org/grpc/codes", false, "only edged/nodelink"},
		{"storage", "google.golang.org/grpc/credentials/insecure", true, ""},
		{"storage", "google.golang.org/grpc", false, "only edged/nodelink"},
		{"cli", "go.yaml.in/yaml/v3", false, "only configs may"},
		{"configs", "iop/e2e/backend", true, "nobody imports e2e"},
		{"e2e/wire", "iop/noded/edgelink", true, ""},
		{"e2e", "golang.org/x/sys/unix", true, ""},
		{"e2e/wire", "golang.org/x/sys/unix", true, "only storage"},
		{"e2e/wire", "google.golang.org/grpc", true, "only edged/nodelink"},
		{"configs", "github.com/unknown/module", false, "no room may"},
	} {
		got := wrongImport(c.room, c.isTest, c.path)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: %q, want %q", c.room, c.path, got, c.want)
		}
	}
}
