package noded

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"iop/configs"
	"iop/noded/adapter/cli"
	"iop/proto/nodepb"
)

// The names are those that edged/payload_agent.go writes; edges of other versions do, too.
func TestAgentIsBuiltFromItsSettings(t *testing.T) {
	b := builder{
		keys: map[string]configs.Secret{"A": "of the file"},
		env: func(name string) (string, bool) {
			return "of the process", name == "A" || name == "B" || name == "IOP_NODE_TOKEN"
		},
		keeper: []string{"keeper"},
	}
	plan, missing, err := b.agentPlan(&nodepb.AdapterConfig{Id: "a", Type: "cli", Command: []string{"x", "{prompt}"}, Settings: map[string]string{
		"prompt": "argument", "parser": "json_lines", "dialect": "codex", "env": "A B", "timeout_ms": "1", "grace_ms": "2", "output_max_bytes": "3", "scratch": "/s",
		"fields.text": "1", "fields.final": "2", "fields.reasoning": "3", "fields.finish": "4", "fields.error": "5", "fields.prompt_tokens": "6", "fields.completion_tokens": "7",
		"of_a_newer_edge": "x",
	}})
	if err != nil || len(missing) > 0 {
		t.Fatal(err, missing)
	}
	want := cli.Config{
		Command: []string{"x", "{prompt}"}, Prompt: cli.FeedArgument, Parser: cli.ParserLines, Dialect: cli.DialectCodex,
		Fields: &cli.Fields{Text: "1", Final: "2", Reasoning: "3", Finish: "4", Error: "5", PromptTokens: "6", CompletionTokens: "7"},
		Env:    []string{"A=of the file", "B=of the process"}, Secrets: []string{"of the file", "of the process"},
		Timeout: time.Millisecond, Grace: 2 * time.Millisecond, OutputMax: 3, Scratch: "/s", Keeper: []string{"keeper"},
	}
	if !reflect.DeepEqual(plan, want) {
		t.Errorf("plan\n%+v, want\n%+v", plan, want)
	}
}

func TestAgentWithoutAVariableOfItsIsBroken(t *testing.T) {
	b := builder{env: func(string) (string, bool) { return "", false }, keeper: []string{"keeper"}}
	_, err := b.makeAgent(&nodepb.AdapterConfig{Id: "a", Type: "cli", Command: []string{"x"}, Settings: map[string]string{"env": "A_KEY"}})
	if err == nil || !strings.Contains(err.Error(), "A_KEY") {
		t.Errorf("error %v, want one that names A_KEY", err)
	}
}

func TestKeeperIsKnownByItsCommandLine(t *testing.T) {
	for _, args := range [][]string{{"noded"}, {"noded", "--config", "x"}, {"noded", keepCommand, "x"}, {keepCommand}} {
		if _, keeps := Keep(args); keeps {
			t.Errorf("%v is taken for a keeper", args)
		}
	}
	if k := Keeper(); len(k) > 0 && !slices.Equal(k[1:], []string{keepCommand}) {
		t.Errorf("the keeper is %v", k)
	}
}
