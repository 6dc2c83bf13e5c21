package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"iop/e2e/backend"
)

// job is one thing that a client wants, and all its tries.
type job struct {
	ask   ask
	tries []*try // guarded by the load's lock
}

// try is one request as its client saw it.
type try struct {
	at       int // replica
	from, to time.Time
	answer   answer
	left     bool // its client went away by itself
	over     atomic.Bool
}

// fault is what a test did to the cluster. While it lasts, and to requests that it touches, it may do what it says.
type fault struct {
	what     string
	from, to time.Time // to is zero while it lasts
	at       []int     // replicas it happens to
	breaks   bool      // what runs through them may break
	refuses  bool      // they may take no connection, and end one that was not answered
	nodes    bool      // a node is gone: what runs anywhere may break, or find no provider
}

func (x *rush) job(a ask) *job {
	j := &job{ask: a}
	x.mu.Lock()
	x.jobs = append(x.jobs, j)
	x.mu.Unlock()
	return j
}

// try is one request at one replica.
func (x *rush) try(j *job, at int, leaves time.Duration) *try {
	t := &try{at: at, from: time.Now()}
	x.mu.Lock()
	j.tries = append(j.tries, t)
	x.mu.Unlock()
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	if leaves > 0 {
		timer := time.AfterFunc(leaves, cancel)
		defer timer.Stop()
	}
	t.answer = call(ctx, x.c.own(at, 8080), j.ask)
	t.left = ctx.Err() != nil
	t.to = time.Now()
	t.over.Store(true)
	return t
}

// whole tells whether it brought all that was asked for.
func (t *try) whole() bool { return t.answer.status == http.StatusOK && t.answer.clean }

// refused tells whether its client can be sure that nothing ran.
func (t *try) refused() bool {
	if t.answer.status == 0 {
		return errors.Is(t.answer.err, syscall.ECONNREFUSED)
	}
	return slices.Contains([]string{
		"no_leader", "overloaded", "stopping", "provider_unavailable", "in_progress_elsewhere", "queue_full", "queue_timeout",
	}, t.answer.code())
}

// inflict notes the beginning of a fault; mend its end.
func (x *rush) inflict(f *fault) *fault {
	x.mu.Lock()
	defer x.mu.Unlock()
	f.from = time.Now()
	x.faults = append(x.faults, f)
	return f
}

func (x *rush) mend(f *fault) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f.to = time.Now()
}

// excuse tells whether a fault that fits touched a try.
func (x *rush) excuse(t *try, fits func(f *fault) bool) bool {
	return slices.ContainsFunc(x.faults, func(f *fault) bool {
		return fits(f) && f.from.Before(t.to) && (f.to.IsZero() || t.from.Before(f.to))
	})
}

// story is a try for people.
func (x *rush) story(j *job, t *try) string {
	var faults []string
	for _, f := range x.faults {
		if f.to.IsZero() || f.to.After(t.from.Add(-2*time.Second)) && f.from.Before(t.to) {
			faults = append(faults, fmt.Sprintf("%s %.3f–%.3f s", f.what, f.from.Sub(x.began).Seconds(), f.to.Sub(x.began).Seconds()))
		}
	}
	return fmt.Sprintf("%s through %s, %.3f–%.3f s, key %q, stream %v: status %d %s, %d bytes, clean %v, lease %s, provider %s, %v: %.200s; faults: %s",
		j.ask.tag, x.c.id(t.at), t.from.Sub(x.began).Seconds(), t.to.Sub(x.began).Seconds(), j.ask.key, j.ask.stream, t.answer.status, t.answer.code(),
		len(t.answer.body), t.answer.clean, t.answer.header.Get("x-iop-lease"), t.answer.header.Get("x-iop-provider"), t.answer.err,
		tail(string(t.answer.body), 2), strings.Join(faults, ", "))
}

// tally is what became of the tries.
type tally struct {
	jobs, tries, whole, broken, left int
	streams, across                  int // whole streams, and those of them during which a fault began
	refusals                         map[string]int
}

// remember holds what every client saw against what was done: nothing lost, nothing doubled, no gap, nothing broken that
// no fault excuses. The load has been stopped.
func (x *rush) remember() tally {
	x.c.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	s := tally{jobs: len(x.jobs), refusals: map[string]int{}}
	runs := x.runs()
	for _, j := range x.jobs {
		x.judge(j, runs[j.ask.tag], &s)
	}
	if len(runs) > len(x.jobs) {
		x.c.t.Errorf("the backends got %d different requests, the clients had %d", len(runs), len(x.jobs))
	}
	return s
}

// pace tells how many requests were served in each second, and what was done then.
func (x *rush) pace() string {
	var out strings.Builder
	served := map[int]int{}
	end := 0
	for _, j := range x.jobs {
		for _, t := range j.tries {
			if t.whole() {
				n := int(t.to.Sub(x.began).Seconds())
				served[n]++
				end = max(end, n)
			}
		}
	}
	for n := range end + 1 {
		fmt.Fprintf(&out, " %d", served[n])
		for _, f := range x.faults {
			if int(f.from.Sub(x.began).Seconds()) == n {
				fmt.Fprintf(&out, " (%s)", f.what)
			}
			if int(f.to.Sub(x.began).Seconds()) == n {
				out.WriteString(" (mended)")
			}
		}
	}
	return out.String()
}

// runs are the ends of all runs of the load, by tag.
func (x *rush) runs() map[string][]backend.End {
	out := map[string][]backend.End{}
	for _, b := range x.m {
		for _, r := range b.Runs() {
			out[r.Tag] = append(out[r.Tag], r.End)
		}
	}
	return out
}

func (x *rush) judge(j *job, runs []backend.End, s *tally) {
	t := x.c.t
	t.Helper()
	may := 0
	for _, y := range j.tries {
		s.tries++
		x.judgeTry(j, y, s)
		if !y.refused() {
			may++
		}
	}
	finished := 0
	for _, e := range runs {
		if e == backend.Finished {
			finished++
		}
	}
	last := j.tries[len(j.tries)-1]
	switch {
	case !last.whole():
		t.Errorf("lost: after %d tries %s", len(j.tries), x.story(j, last))
	case finished == 0:
		t.Errorf("answered, but it never ran to its end (%v): %s", runs, x.story(j, last))
	case len(runs) > may:
		t.Errorf("doubled: %d runs (%v) for %d tries that may have run: %s", len(runs), runs, may, x.story(j, last))
	}
}

func (x *rush) judgeTry(j *job, y *try, s *tally) {
	t := x.c.t
	t.Helper()
	wrong := func(what string) { t.Helper(); t.Errorf("%s: %s", what, x.story(j, y)) }
	a := &y.answer
	switch {
	case y.whole():
		s.whole++
		if j.ask.stream {
			s.streams++
			if slices.ContainsFunc(x.faults, func(f *fault) bool { return f.from.After(y.from) && f.from.Before(y.to) }) {
				s.across++
			}
		}
		if !bytes.Equal(a.body, x.body(j)) {
			wrong("a whole answer with other bytes")
		}
	case a.status == http.StatusOK:
		s.broken++
		if !bytes.HasPrefix(x.body(j), withoutError(a.body)) {
			wrong("a gap in its bytes")
		}
		if !y.left && !x.excuse(y, func(f *fault) bool { return f.nodes || f.breaks && slices.Contains(f.at, y.at) }) {
			wrong("broken, and nothing was done to its way")
		}
	case y.left:
		s.left++
	case a.status == 0:
		if y.refused() {
			s.refusals["no connection"]++
		} else {
			s.broken++
		}
		if !x.excuse(y, func(f *fault) bool { return slices.Contains(f.at, y.at) && (f.breaks || f.refuses) }) {
			wrong("no answer, and nothing was done to its way")
		}
	default:
		s.refusals[fmt.Sprint(a.status, " ", a.code())]++
		x.judgeRefusal(y, wrong)
	}
}

// withoutError is a broken stream without what its client is told of the cause.
func withoutError(body []byte) []byte {
	if i := bytes.LastIndex(body, []byte("data: {\"error\":{")); i >= 0 {
		return body[:i]
	}
	return body
}

// judgeRefusal: every refusal needs a reason, and says when to come again.
func (x *rush) judgeRefusal(y *try, wrong func(string)) {
	x.c.t.Helper()
	any := func(f *fault) bool { return true }
	node := func(f *fault) bool { return f.nodes || f.breaks && slices.Contains(f.at, y.at) }
	switch a := &y.answer; a.code() {
	case "no_leader", "overloaded", "stopping", "in_progress_elsewhere":
		if a.header.Get("Retry-After") == "" {
			wrong("no Retry-After")
		}
		if a.code() != "in_progress_elsewhere" && !x.excuse(y, any) {
			wrong("refused, and nothing was done to the cluster")
		}
	case "storage_failed":
		if !x.excuse(y, func(f *fault) bool { return f.breaks && slices.Contains(f.at, y.at) }) {
			wrong("its disk failed, and nothing was done to it")
		}
	case "provider_unavailable", "provider_error", "provider_timeout":
		if !x.excuse(y, node) {
			wrong("no provider, and nothing was done to its way")
		}
	default:
		wrong("an answer that nobody should get")
	}
}

// body is what a job has to get, to the byte.
func (x *rush) body(j *job) []byte {
	const path = "/v1/chat/completions"
	if j.ask.stream {
		return bytes.Join(x.plan.Frames(path, "m"), nil)
	}
	return x.plan.Plain(path, "m")
}

func (s tally) String() string {
	var refusals []string
	for _, k := range slices.Sorted(maps.Keys(s.refusals)) {
		refusals = append(refusals, fmt.Sprintf("%s × %d", k, s.refusals[k]))
	}
	return fmt.Sprintf("%d requests served, none lost, in %d tries; %d streams whole, %d of them across the beginning of a fault; %d broken under a fault, %d left; refusals: %s",
		s.jobs, s.tries, s.streams, s.across, s.broken, s.left, strings.Join(refusals, ", "))
}
