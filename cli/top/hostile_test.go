//go:build !windows

package top

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"iop/cli/top/terminal"
	"iop/edged/adminapi"
)

// hostileTexts are names that a client could choose.
var hostileTexts = []string{
	"\x1b]0;owned\x07title", "\x1b[2J\x1b[Hwiped", "\x1b[31mred", "a\nb\r\nc\td", "\x9b2Jc1", "\x90dcs\x9c", "null\x00byte", "\x7fdel",
	"模型-大", "日本語のモデル名は長い", "😀model", "👨\u200d👩\u200d👧 family", "👍🏽", "🇩🇪🇫", "❤\ufe0f", "e\u0301\u0301", "z" + strings.Repeat("\u0300", 200),
	"\u202egnp.exe", "\u200binvisible", "\ufeffbom", "\xff\xfe", "\u2028line", "\u00a0nbsp", "한국어", "ﾊﾝｶｸ", "กำแพง", "नमस्ते", "\u115f", "\U000e0041tag", "\ue000private",
	"שלום", "\u0600num", "ﷺ", "꧁꧂", "1️⃣",
}

// TestClean: whatever comes in, nothing steers a terminal, and all ways to measure agree on the width.
func TestClean(t *testing.T) {
	t.Parallel()
	control := regexp.MustCompile(`[\x00-\x1f\x7f-\x9f\x{200b}-\x{200f}\x{2028}-\x{202e}\x{feff}]`)
	for _, in := range hostileTexts {
		for _, utf8 := range []bool{true, false} {
			got := clean(in, utf8)
			if control.MatchString(got) {
				t.Errorf("clean(%q) = %q", in, got)
			}
			if !utf8 && strings.IndexFunc(got, func(r rune) bool { return r > 0x7e }) >= 0 {
				t.Errorf("without Unicode clean(%q) = %q", in, got)
			}
			if a, b := ansi.StringWidth(got), ansi.StringWidthWc(got); a != b {
				t.Errorf("clean(%q) = %q is %d wide or %d", in, got, a, b)
			}
			if again := clean(got, utf8); again != got {
				t.Errorf("clean(%q) = %q, and cleaned again %q", in, got, again)
			}
			for w := range 12 {
				if f := newScene(utf8).fit(got, w, false); ansi.StringWidth(f) != w {
					t.Errorf("fit(%q, %d) = %q is %d wide", got, w, f, ansi.StringWidth(f))
				}
			}
		}
	}
	for _, same := range []string{"ornith:35b", "模型-大", "한국어", "\u00e9t\u00e9", "e\u0301", "😀model"} {
		if got := clean(same, true); got != same {
			t.Errorf("clean(%q) = %q", same, got)
		}
	}
}

// TestHostileNames: names of clients on a whole screen: each line stays as wide as it is, columns stay where they are, and no
// sequence of theirs reaches the terminal.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	f := busyFrame()
	f.Waiters = nil
	for i, text := range hostileTexts {
		f.Waiters = append(f.Waiters, adminapi.LiveWaiter{
			Request: text, Model: text, Class: "normal", State: "waiting", Edge: text, Principal: text, Place: uint64(i + 1), EnqueuedAtMS: f.AtMS - 7000, WaitsFor: text,
		})
	}
	f.Edge, f.Version = "\x1b]0;owned\x07", "\x1b[2J"
	f.Providers[0].ID, f.Providers[0].Status, f.Providers[0].Cause = "\x1b]0;owned\x07", "\x1b[2Jfull", "\x1b[2J"
	r := start(t, 150, 60, f)
	r.Await("0;owned", "live")
	r.Keys("d")
	r.Await(`Drain provider \x1b]0;owned`)
	r.Keys(terminal.KeyEsc)
	r.Await("Nothing was changed") // Esc and a key at once are Alt and the key
	r.Keys("2")
	seen := r.Await("7s", "never", "한국어", "x cancel", `1\ufe0f\u20e3`)
	n := 0
	for line := range strings.Lines(seen) {
		if strings.Contains(line, "never") {
			n++
			at := ansi.StringWidth(line[:strings.Index(line, "waiting")])
			if want := 2 + 6 + 1; at < want || ansi.StringWidth(line[:strings.Index(line, "never")])-at != 8+1+6+2 {
				t.Errorf("columns have moved (%d):\n%s", at, line)
			}
		}
	}
	if n != len(hostileTexts) {
		t.Errorf("%d rows of %d:\n%s", n, len(hostileTexts), seen)
	}
	r.Keys("x")
	r.Await("Take request")
	r.Keys("n", terminal.KeyEnter)
	r.Await("It has two lines")
	r.Keys("q", "q")
	_ = r.ended()
	written := r.Written()
	for _, bad := range []string{"\x1b]0;owned", "\x1b[2Jwiped", "\x1b[2Jfull", "\x1b[31mred", "\x9b2J", "\x00", "\u202e"} {
		if strings.Contains(written, bad) {
			t.Errorf("%q was written to the terminal", bad)
		}
	}
}

// TestPlain: without colours, and without Unicode, nothing of them is written, and every state can still be told.
func TestPlain(t *testing.T) {
	t.Parallel()
	r := start(t, 80, 24, busyFrame(), func(o *Options) { o.Color, o.Unicode = false, false })
	golden(t, "plain", r.Await("unavailable", "> gpu-1", "? help"))
	r.Keys("s", "2", "x")
	r.Await("Take request")
	r.Keys("n", "3", terminal.KeyEnter)
	r.Await("It has two lines.")
	r.broken <- errGone
	r.Await("NOT CONNECTED")
	r.Keys("q", "q")
	_ = r.ended()
	written := r.Written()
	if m := regexp.MustCompile(`\x1b\[[\d;]*m`).FindAllString(written, -1); len(m) > 0 {
		for _, s := range m {
			if regexp.MustCompile(`[\[;](3\d|4\d|9\d|10\d)[;m]`).MatchString(s) {
				t.Errorf("a colour was written: %q", s)
				break
			}
		}
	}
	for _, c := range written {
		if c > 0x7e {
			t.Errorf("%q was written", c)
			break
		}
	}
}

// TestColors: the same with colours has some, so that the test above could fail.
func TestColors(t *testing.T) {
	t.Parallel()
	r := start(t, 80, 24, busyFrame())
	r.Await("unavailable")
	if !regexp.MustCompile(`\x1b\[[\d;]*3[125][;m]`).MatchString(r.Written()) {
		t.Errorf("no colour: %q", r.Written())
	}
}

// TestCrowd: of 10,000 waiters only those that are seen are drawn, a picture that has not changed writes nothing, and a row
// that changes writes little.
func TestCrowd(t *testing.T) {
	t.Parallel()
	r := start(t, 80, 24, crowd(10_000))
	r.Keys("2")
	r.Await("Queue 10000", "req-00000")
	r.Keys("G")
	r.Await(">  10000 req-09999")
	r.Keys("g", "/", "model-3", terminal.KeyEnter)
	r.Await("Queue 1429 of 10000", ">      4 req-00003")
	r.Keys("s", "s", "r")
	r.Await("REQUEST▼", "req-00003")
	before := len(r.Written())
	for i := range 20 {
		f := &adminapi.Frame{Seq: r.seq + 1 + uint64(i), AtMS: busyFrame().AtMS, Edge: "edge-1", Leader: "edge-1", Role: "leader", AppliedIndex: 4711 + uint64(i)}
		r.frames <- f
	}
	r.Await("index 4730")
	if n := len(r.Written()) - before; n > 8000 {
		t.Errorf("20 frames wrote %d bytes", n)
	}
}

// BenchmarkFrame is what a frame with 10,000 waiters costs the view, filtered and ordered.
func BenchmarkFrame(b *testing.B) {
	var p adminapi.Picture
	f := crowd(10_000)
	f.Whole = true
	if err := p.Apply(f); err != nil {
		b.Fatal(err)
	}
	m := newModel(&Options{Now: time.Now, Unicode: true}, take(&p, noon))
	m.active, m.filter = 1, "model ful"
	m.panes[1].nextOrder(2)
	for b.Loop() {
		m.Update(take(&p, noon))
		if s := m.screen(); len(s) != 24 {
			b.Fatal(fmt.Sprint(s))
		}
	}
}
