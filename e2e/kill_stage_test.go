//go:build unix

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"iop/e2e/backend/talk"
)

// admitted is the stage of a request that waits for a slot.
const admitted talk.Stage = "admitted"

// stopped is a request that has come to a stage of its run, when its node, its backend or its command is killed.
type stopped struct {
	kind   string // tunnel, ollama, cli
	stage  talk.Stage
	stream bool
	flight *flight
}

func (c *stopped) name() string { return fmt.Sprintf("%s-%s-%v", c.kind, c.stage, c.stream) }

// model is the one whose provider can stop there: for the stages before anything is read there are providers of their own.
func (c *stopped) model() string {
	switch c.stage {
	case talk.Connected, admitted:
		return c.kind + "-" + string(c.stage)
	}
	return c.kind
}

// TestKillAtEveryStage: the node, the backend or the command of runs in every stage is killed (SIGKILL), streams and
// others, through a tunnel, Ollama and a command, all at the same time. Each client sees an honest end, each lease comes
// back once, every counter goes to 0, and once what was killed is there again the next request is served.
func TestKillAtEveryStage(t *testing.T) {
	t.Parallel()
	k := newKills(t)
	k.round("command", []string{"cli"}, func() {
		for _, pid := range k.backend.traces() {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}, func() {})
	k.round("backend", []string{"tunnel", "ollama"}, func() { k.backend.kill() }, func() { k.backend.restart(t) })
	k.round("node", []string{"tunnel", "ollama", "cli"}, func() { k.nodes["n1"].kill() }, func() {
		k.startNode("n1")
		k.awaitLink("n1")
	})
}

// kills is a world whose runs stop where they are told to.
type kills struct {
	*world
	test    *testing.T
	backend *staller
}

func newKills(t *testing.T) *kills {
	t.Helper()
	k := &kills{test: t, backend: newStaller(t)}
	at, mute := "http://"+k.backend.address, "http://"+k.backend.mute
	me := self(t)
	agent := func(id string, args ...string) provider {
		fields := talk.AgentFields()
		fields["scratch"], fields["grace_ms"] = filepath.Join(t.TempDir(), "runs"), 300
		return provider{id: id, command: append([]string{me, talkCommand, k.backend.dir}, args...), cli: fields}
	}
	l := layout{models: map[string][]string{}, providers: []provider{
		{id: "tunnel", url: at + "/v1", capacity: 16},
		{id: "tunnel-connected", url: mute + "/v1", capacity: 16},
		{id: "tunnel-admitted", url: at + "/v1"},
		{id: "ollama", kind: "ollama", url: at, capacity: 16},
		{id: "ollama-connected", kind: "ollama", url: mute, capacity: 16},
		{id: "ollama-admitted", kind: "ollama", url: at},
		agent("cli"), agent("cli-connected", "mute"),
	}}
	for i := range l.providers {
		l.models[l.providers[i].id] = []string{l.providers[i].id}
	}
	k.world = newWorld(t, l)
	return k
}

// cells are the requests of a round. A command has no queue, and its head comes with the first piece.
func cells(kinds []string) []*stopped {
	var out []*stopped
	for _, kind := range kinds {
		for _, stage := range []talk.Stage{admitted, talk.Connected, talk.BeforeHead, talk.AfterHead, talk.MidStream, talk.BeforeEnd} {
			if kind == "cli" && (stage == admitted || stage == talk.AfterHead) {
				continue
			}
			out = append(out, &stopped{kind: kind, stage: stage}, &stopped{kind: kind, stage: stage, stream: true})
		}
	}
	return out
}

// round brings requests to their stages, kills, looks at what the clients got, and brings back what was killed.
func (k *kills) round(victim string, kinds []string, kill, restore func()) {
	k.t.Helper()
	k.backend.forget()
	all, traces, waiting := cells(kinds), 0, 0
	var holders []*flight
	for _, kind := range kinds {
		if kind != "cli" { // whatever waits, waits for this one
			holders = append(holders, k.start(ask{model: kind + "-admitted", tag: "holder", prompt: talk.StallAt(talk.BeforeHead, "holder-"+kind)}))
			traces++
		}
	}
	await(k.t, "the slots are taken", func() bool { return len(k.backend.traces()) == traces })
	for _, c := range all {
		c.flight = k.start(ask{model: c.model(), tag: victim + " killed, " + c.name(), stream: c.stream, prompt: talk.StallAt(c.stage, c.name())})
		if c.stage == admitted {
			waiting++
		} else {
			traces++
		}
	}
	awaitWithin(k.t, 2*patience, "all runs are in their stages", func() bool { return len(k.backend.traces()) == traces && k.pending() == waiting })
	k.awaitLeases(traces)
	kill()
	for _, c := range all {
		c.wantHonestEnd(k.test)
	}
	for _, h := range holders {
		a := h.wait(k.t)
		a.wantError(k.t, 502, "provider_error")
	}
	if slices.Contains(kinds, "cli") {
		k.awaitNoCommand()
	}
	k.awaitIdle()
	restore()
	for _, kind := range kinds {
		for _, model := range []string{kind, kind + "-admitted"} {
			if model != "cli-admitted" {
				// Failures at once degrade a provider for a moment.
				await(k.t, model+" serves again after the "+victim+" was killed", func() bool { a := k.ask(ask{model: model}); return a.status == 200 && a.clean })
			}
		}
	}
	k.awaitIdle()
}

// awaitNoCommand waits until no command that has stopped is there any more.
func (k *kills) awaitNoCommand() {
	k.t.Helper()
	await(k.t, "no command runs", func() bool {
		for _, pid := range k.backend.traces() {
			if pid != k.backend.cmd.Process.Pid && lives(pid) {
				return false
			}
		}
		return true
	})
}

// wantHonestEnd checks that a client can't take what it got for an answer, and is told as much as is known.
func (c *stopped) wantHonestEnd(t *testing.T) {
	t.Helper()
	a := c.flight.wait(t)
	begun := c.stream && (c.stage == talk.MidStream || c.stage == talk.BeforeEnd)
	switch {
	case a.status == 200 && a.clean:
		t.Errorf("%s: a clean end: %s", a.tag, a.body)
	case begun && a.status != 200:
		t.Errorf("%s: status %d, although its stream had begun: %s", a.tag, a.status, a.body)
	case a.status == 200 && c.stream:
		all := frames(a.body)
		text := make([]string, len(all))
		for i, f := range all {
			text[i] = string(f)
		}
		wantErrorEvent(t, text)
		want := map[talk.Stage]string{talk.MidStream: talk.FirstPiece, talk.BeforeEnd: talk.FirstPiece + talk.SecondPiece}[c.stage]
		if got := a.text(); got != want || strings.Count(string(a.body), `data: {"error":`) != 1 {
			t.Errorf("%s: text %q, want %q, in\n%s", a.tag, got, want, a.body)
		}
	case a.status == 200: // half a body, cut off
	case c.stage == admitted:
		if got := a.header.Get("x-iop-dispatched"); a.status < 502 || got != "false" || a.code() == "" {
			t.Errorf("%s: status %d, x-iop-dispatched %q: %s", a.tag, a.status, got, a.body)
		}
	default:
		a.wantError(t, 502, "provider_error")
		if got := a.header.Get("x-iop-dispatched"); got == "false" {
			t.Errorf("%s: x-iop-dispatched %q, although it may have run", a.tag, got)
		}
	}
}
