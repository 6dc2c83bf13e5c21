package fsm_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "iop/fsm"
)

var flagUpdate = flag.Bool("update", false, "rewrite the outcomes in testdata")

// TestStories runs testdata/*.txt: stories, each begun by a title in a comment after an empty line. A story is a list of
// commands, "----", what they bring about, further commands, and so on. Outcomes come first, then effects; what is
// addressed to a session says so (to=s2) once there was more than one. Commands are in script_commands_test.go.
//
// A story begins with the configuration: the first other command applies it, opens a session of edge e1 and registers
// every node there and makes it ready, unless the story says "bare". Every command goes to the naive model too.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	count := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		stories := parseStories(string(data))
		for _, st := range stories {
			count++
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+st.title, func(t *testing.T) {
				out = append(out, st.run(t))
			})
		}
		if text := strings.Join(out, "\n"); *flagUpdate && !t.Failed() && len(out) == len(stories) {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if count < 40 {
		t.Errorf("%d stories, want at least 40", count)
	}
}

// story is its comment and its steps.
type story struct {
	title   string
	comment []string
	steps   []step
}

// step is a list of commands and what it shall bring about.
type step struct{ commands, want []string }

// parseStories cuts a file. A line after "----" that begins with a verb begins the next step.
func parseStories(text string) []*story {
	var all []*story
	var st *story
	comment, wanted := false, false
	for _, line := range strings.Split(text, "\n") {
		isComment := strings.HasPrefix(line, "#")
		switch {
		case isComment && !comment:
			st = &story{title: strings.TrimSpace(strings.TrimLeft(line, "# ")), comment: []string{line}}
			all = append(all, st)
			wanted = true
		case isComment:
			st.comment = append(st.comment, line)
		case line == "" || st == nil:
		case line == "----":
			wanted = true
		case isCommand(line) || strings.HasPrefix(line, " "):
			if wanted {
				st.steps = append(st.steps, step{})
				wanted = false
			}
			last := &st.steps[len(st.steps)-1]
			last.commands = append(last.commands, line)
		default:
			last := &st.steps[len(st.steps)-1]
			last.want = append(last.want, line)
		}
		comment = isComment
	}
	return all
}

func isCommand(line string) bool {
	_, ok := verbs()[strings.Fields(line)[0]]
	return ok
}

// run plays a story and returns it with the outcomes that it had.
func (st *story) run(t *testing.T) string {
	var b strings.Builder
	for _, c := range st.comment {
		fmt.Fprintln(&b, c)
	}
	s := newScript(t)
	for _, step := range st.steps {
		s.out = nil
		for i := 0; i < len(step.commands); i++ {
			line := step.commands[i]
			fmt.Fprintln(&b, line)
			var within []string
			for i+1 < len(step.commands) && strings.HasPrefix(step.commands[i+1], " ") {
				i++
				within = append(within, strings.TrimSpace(step.commands[i]))
				fmt.Fprintln(&b, step.commands[i])
			}
			s.do(line, within)
		}
		fmt.Fprintln(&b, "----")
		for _, line := range s.out {
			if isCommand(line) {
				t.Fatalf("outcome %q begins with a verb", line)
			}
			fmt.Fprintln(&b, line)
		}
		if !*flagUpdate && !slices.Equal(s.out, step.want) {
			t.Errorf("after:\n\t%s\ngot:\n\t%s\nwant:\n\t%s", strings.Join(step.commands, "\n\t"),
				strings.Join(s.out, "\n\t"), strings.Join(step.want, "\n\t"))
		}
	}
	s.after()
	return b.String()
}

// script is a story being played.
type script struct {
	*pair
	t        *testing.T
	config   Config
	begun    bool
	elapsed  Time
	edges    map[string]SessionID // "e1" and "s1" → session
	names    map[SessionID]string
	seq      map[SessionID]uint64
	requests map[string]LeaseID // the last lease of a request
	held     map[LeaseID]string // the request of a lease
	out      []string
}

func newScript(t *testing.T) *script {
	s := &script{
		pair: newPair(true), t: t, edges: map[string]SessionID{}, names: map[SessionID]string{},
		seq: map[SessionID]uint64{}, requests: map[string]LeaseID{}, held: map[LeaseID]string{},
	}
	s.config.Pool = Pool{MaxQueue: 100, ReattachWindow: 30 * Second, FenceTimeout: 10 * Second}
	return s
}

// apply makes an entry of a batch, gives it to both machines, checks, and tells what came of it.
func (s *script) apply(b Batch, quiet bool) {
	s.t.Helper()
	e := &Entry{Index: s.m.Index() + 1, Term: 1, Elapsed: s.elapsed, Batches: []Batch{b}}
	res, err := s.step(e)
	if err != nil {
		s.t.Fatalf("%s\n%v", show(e), err)
	}
	if err := s.compare(); err != nil {
		s.t.Fatalf("%s\n%v", show(e), err)
	}
	for i, o := range res.Outcomes[0] {
		s.learn(b.Commands[i], o)
	}
	for _, f := range res.Effects {
		if f.Kind == EffectGranted {
			s.learnGrant(f.Grant)
		}
	}
	if quiet {
		return
	}
	for i, o := range res.Outcomes[0] {
		s.out = append(s.out, s.outcome(b.Commands[i], o))
	}
	for _, f := range res.Effects {
		s.out = append(s.out, s.effect(f))
	}
	for _, c := range res.Checks {
		s.out = append(s.out, fmt.Sprintf("to compare at %d: right=%v", c.Index, c.Digest == s.digestAt(c.Index)))
	}
}

// learn gives names to sessions and leases.
func (s *script) learn(c Command, o Outcome) {
	if c, ok := c.(*OpenSession); ok && o.Code == SessionOpened && s.names[o.Session] == "" {
		name := fmt.Sprint("s", len(s.names)+1)
		s.names[o.Session] = name
		s.edges[name], s.edges[string(c.Edge)] = o.Session, o.Session
		s.seq[o.Session] = 1
	}
	if o.Code == Granted {
		s.learnGrant(o.Grant)
	}
}

func (s *script) learnGrant(g Grant) {
	s.requests[string(g.Request)], s.held[g.Lease] = g.Lease, string(g.Request)
}

// propose gives a session's commands in one batch with its next number.
func (s *script) propose(by SessionID, cs ...Command) {
	s.t.Helper()
	b := Batch{Session: by, Commands: cs, Sum: sum(cs)}
	if by != 0 {
		b.Seq, b.AckBelow = s.seq[by], s.seq[by]
		s.seq[by]++
	}
	s.apply(b, !s.begun)
}

// begin is the silent beginning of most stories.
func (s *script) begin() {
	if s.begun {
		return
	}
	s.propose(0, &ApplyConfig{Document: s.document(), Config: cloned(s.config)})
	s.propose(0, &OpenSession{Edge: "e1", Nonce: 1})
	for _, id := range s.config.Nodes {
		s.propose(s.edges["e1"], &RegisterNode{Node: id, Instance: 1})
		s.propose(s.edges["e1"], &NodeReady{Node: id, Generation: 1})
	}
	s.begun = true
}

// after tells what must be true after every story: it can be restored at its end, replayed from its beginning, and
// everything in it comes to an end.
func (s *script) after() {
	restored(s.t, s.m)
	again := New()
	for _, e := range s.entries {
		again.Apply(e)
	}
	if again.Digest() != s.m.Digest() {
		s.t.Error("the same entries gave another digest")
	}
	if err := s.zero(); err != nil {
		s.t.Error(err)
	}
}
