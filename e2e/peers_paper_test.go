package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// paper is the measured part of docs/COMPARISON.md.
type paper struct {
	text  bytes.Buffer
	began string
	load  string
}

const (
	paperPath  = "../docs/COMPARISON.md"
	paperBegin = "<!-- measured: E2E_PEERS=1 go test ./e2e -run TestPeers -update -->\n"
	paperEnd   = "<!-- end of what was measured -->\n"
)

func newPaper(present []peer) *paper {
	p := &paper{began: time.Now().UTC().Format("2006-01-02 15:04"), load: loadAverage()}
	var names []string
	for _, x := range present {
		names = append(names, x.name+" "+x.version)
	}
	fmt.Fprintf(&p.text, "%s; %s/%s, %d cores. Measured %s UTC", strings.Join(names, ", "), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), p.began)
	return p
}

// loadAverage is that of the last minute, or a question mark.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Fields(string(b))[0]
}

// add adds a table.
func (p *paper) add(title, text string, columns []string, rows [][]string) {
	fmt.Fprintf(&p.text, "\n### %s\n\n%s\n\n| | %s |\n|---%s|\n", title, text, strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
	for _, r := range rows {
		fmt.Fprintf(&p.text, "| %s |\n", strings.Join(r, " | "))
	}
}

// addSpeed measures all of them alternately in one run, beside no gateway at all.
func (p *paper) addSpeed(t *testing.T, present []peer) {
	_, lean := startRole(t, "backend", "")
	subjects := []speedSubject{{name: "no gateway", address: lean}}
	for _, x := range present {
		if x.partial {
			continue
		}
		g := x.start(t, setting{backend: lean, capacity: 256, queue: 1024, timeout: time.Minute, speed: true})
		subjects = append(subjects, speedSubject{name: x.name, address: g.address(), header: g.header, processes: g.processes})
	}
	rows := map[string][]string{}
	var columns []string
	for _, stream := range []bool{false, true} {
		for _, clients := range []int{1, 64} {
			kind := map[bool]string{false: "plain", true: "stream"}[stream]
			columns = append(columns, fmt.Sprintf("%s, %d: requests/s", kind, clients), "of ReverseProxy's")
			if clients == 1 {
				columns = append(columns, "added p50 / p99, ms")
			} else {
				columns = append(columns, "CPU, µs")
			}
			for name, cells := range speedRows(t, subjects, clients, stream) {
				rows[name] = append(rows[name], cells...)
			}
		}
	}
	if t.Failed() {
		return
	}
	var table [][]string
	for _, s := range subjects {
		table = append(table, append([]string{s.name}, rows[s.name]...))
	}
	p.add("Speed", fmt.Sprintf("All in front of one backend that answers with prepared bytes, alternately, %d turns of %v each; 1 client and 64, a stream has %d pieces. "+
		"Capacity 256, so that nobody waits. Added is what a request takes above no gateway. CPU is of all processes of the gateway, per request. "+
		"Broken answers are told where there were any.", benchRounds(), benchSlice(), benchTokens), columns, table)
}

// speedSubject is a subject that may need headers of its own.
type speedSubject struct {
	name, address string
	header        http.Header
	processes     func() []*process
}

func (s *speedSubject) request(stream bool) []byte {
	b := benchRequest("/v1/chat/completions", stream)
	var head bytes.Buffer
	_ = s.header.Write(&head) // a buffer takes all
	return bytes.Replace(b, []byte("Host: gateway\r\n"), append([]byte("Host: gateway\r\n"), head.Bytes()...), 1)
}

// speedRows are three cells for each subject.
func speedRows(t *testing.T, subjects []speedSubject, clients int, stream bool) map[string][]string {
	results := map[string]*measured{}
	for range benchRounds() {
		for _, s := range subjects {
			m := results[s.name]
			if m == nil {
				m = &measured{}
				results[s.name] = m
			}
			s.measure(m, clients, stream)
		}
	}
	for name, m := range results {
		if len(m.latencies) == 0 {
			t.Errorf("%s answered nothing", name)
			return nil
		}
		slices.Sort(m.latencies)
	}
	direct, proxy := results["no gateway"], results["ReverseProxy"]
	out := map[string][]string{}
	for _, name := range slices.Collect(maps.Keys(results)) {
		m := results[name]
		ratio, last := "", ""
		if proxy != nil {
			ratio = fmt.Sprintf("%.2f", m.rate()/proxy.rate())
		}
		switch {
		case name == "no gateway":
			last = "–"
		case clients == 1:
			last = fmt.Sprintf("%.2f / %.1f", m.at(0.5)-direct.at(0.5), m.at(0.99)-direct.at(0.99))
		default:
			last = fmt.Sprintf("%.0f", m.cpuMicros())
		}
		rate := fmt.Sprintf("%.0f", m.rate())
		if m.broken > 0 {
			rate += fmt.Sprintf(" (%d broken)", m.broken)
		}
		out[name] = []string{rate, ratio, last}
	}
	return out
}

func (s *speedSubject) measure(m *measured, clients int, stream bool) {
	var processes []*process
	if s.processes != nil {
		processes = s.processes()
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	request := s.request(stream)
	began, used := time.Now(), cpuTime(processes)
	end := began.Add(benchSlice())
	for range clients {
		all.Go(func() {
			samples, broken, _ := askUntil(s.address, request, end)
			mu.Lock()
			defer mu.Unlock()
			m.latencies = append(m.latencies, samples...)
			m.broken += broken
		})
	}
	all.Wait()
	m.took += time.Since(began)
	m.cpu += cpuTime(processes) - used
}

// finish writes the document with -update, and else prints what it would hold.
func (p *paper) finish(t *testing.T) {
	if t.Failed() {
		return
	}
	text := strings.Replace(p.text.String(), p.began+" UTC", fmt.Sprintf("%s UTC, load %s before, %s after.\n", p.began, p.load, loadAverage()), 1)
	if !*update {
		t.Log("\n" + text)
		return
	}
	old, err := os.ReadFile(paperPath)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := bytes.Cut(old, []byte(paperBegin))
	_, foot, ends := bytes.Cut(rest, []byte(paperEnd))
	if !begins || !ends {
		t.Fatalf("%s has lost the marks of what is measured", paperPath)
	}
	fresh := slices.Concat(head, []byte(paperBegin), []byte(text), []byte(paperEnd), foot)
	if err := os.WriteFile(paperPath, fresh, 0o644); err != nil { //nolint:gosec // a document
		t.Fatal(err)
	}
}

// callBy asks by a client that keeps its connection and reads the whole answer.
func callBy(c *http.Client, g *gateway, a ask) (status int, err error) {
	r, err := a.request(context.Background(), g.address())
	if err != nil {
		return 0, err
	}
	res, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}
