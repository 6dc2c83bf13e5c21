package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// These tests need Prometheus: Debian's package has prometheus and promtool. Without it they are skipped, unless
// E2E_PROMTOOL=1 says that it has to be there.

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("E2E_PROMTOOL") == "1" {
		t.Fatalf("E2E_PROMTOOL=1, and %v: apt-get install prometheus", err)
	}
	t.Skipf("%v: apt-get install prometheus", err)
	return ""
}

func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), tool(t, "promtool"), args...)
	c.Stdin = strings.NewReader(stdin)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

var watching = filepath.Join("..", "configs", "prometheus")

func TestAlertsFireAndDoNot(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", filepath.Join(watching, "rules.yaml"))
	promtool(t, "", "check", "config", "--syntax-only", filepath.Join(watching, "prometheus.yaml"))
	promtool(t, "", "test", "rules", filepath.Join(watching, "rules_test.yaml"))
	rules := readText(t, filepath.Join(watching, "rules.yaml"))
	tests := readText(t, filepath.Join(watching, "rules_test.yaml"))
	for _, a := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		if n := strings.Count(tests, `alertname="`+a[1]+`"`); n != 2 {
			t.Errorf("%s has %d tests, not one in which it fires and one in which it does not", a[1], n)
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// prometheus is a real one that scrapes the world's edge each second.
type prometheus struct {
	w       *world
	address string
}

var listensOn = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// newPrometheus starts one with the alerts of the repository, whose patience is cut to nothing.
func newPrometheus(w *world) *prometheus {
	w.t.Helper()
	t, ok := w.t.(*testing.T)
	if !ok {
		w.t.Fatal("no test")
	}
	program := tool(t, "prometheus")
	rules := regexp.MustCompile(`for: \w+`).ReplaceAllString(readText(t, filepath.Join(watching, "rules.yaml")), "for: 0s")
	file := w.write("prometheus.yaml", fmt.Appendf(nil, `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: iop
    static_configs: [{targets: [%q]}]
`, w.write("rules.yaml", []byte(rules)), w.edge.admin))
	p := spawn(t, "prometheus", nil, program, "--config.file="+file, "--storage.tsdb.path="+w.path("tsdb"), "--web.listen-address=127.0.0.1:0")
	w.track(p)
	x := &prometheus{w: w}
	await(t, "prometheus listens", func() bool {
		if m := listensOn.FindStringSubmatch(p.out.String()); m != nil {
			x.address = m[1]
		}
		return x.address != ""
	})
	await(t, "prometheus is ready", func() bool { _, err := tryFetch(x.address, "/-/ready"); return err == nil })
	return x
}

// promSample is one value that Prometheus answers.
type promSample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

func (s *promSample) number() float64 {
	text, _ := s.Value[1].(string)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// ask evaluates an expression now.
func (p *prometheus) ask(expr string) ([]promSample, error) {
	body, err := tryFetch(p.address, "/api/v1/query?query="+url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	var a struct {
		Data struct {
			Result []promSample `json:"result"`
		} `json:"data"`
	}
	err = json.Unmarshal(body, &a)
	return a.Data.Result, err
}

// panel is a part of a dashboard.
type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct {
		H, W, X, Y int
	} `json:"gridPos"`
	Targets []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
}

type board struct {
	Title         string  `json:"title"`
	UID           string  `json:"uid"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []panel `json:"panels"`
	Templating    struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

func readBoard(t *testing.T) *board {
	t.Helper()
	var b board
	if err := json.Unmarshal([]byte(readText(t, filepath.Join("..", "configs", "grafana", "iop.json"))), &b); err != nil {
		t.Fatal(err)
	}
	return &b
}

// TestDashboardIsWhole: the shape that Grafana wants, as far as it can be told without one.
func TestDashboardIsWhole(t *testing.T) {
	t.Parallel()
	b := readBoard(t)
	if b.Title == "" || b.UID == "" || b.SchemaVersion < 39 || len(b.Panels) < 30 {
		t.Fatalf("%q %q, schema %d, %d panels", b.Title, b.UID, b.SchemaVersion, len(b.Panels))
	}
	vars := map[string]bool{"__rate_interval": true, "__range": true}
	for _, v := range b.Templating.List {
		vars[v.Name] = true
	}
	for _, want := range []string{"datasource", "edge", "model", "provider"} {
		if !vars[want] {
			t.Errorf("there is no variable %s", want)
		}
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range b.Panels {
		if p.ID <= 0 || ids[p.ID] {
			t.Errorf("panel %q has the id %d, which is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Title == "" || p.GridPos.W <= 0 || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q is not whole", p.ID, p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[at]; other != "" {
					t.Fatalf("%q lies upon %q", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		for _, q := range p.Targets {
			for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				if !vars[m[1]] {
					t.Errorf("%q: there is no variable %s", p.Title, m[1])
				}
			}
		}
	}
}

// withoutData are panels that have nothing to show of a single young edge without TLS.
func withoutData() map[string]string {
	return map[string]string{
		"Replicas that answer": "there is no other replica",
		"Way to the others":    "there is no other replica",
		"Replicas that differ": "nobody is compared",
		"Age of the snapshot":  "no snapshot is written yet",
		"Certificates end in":  "there is no TLS",
		"Changes by operators": "nobody changed anything",
	}
}

// TestPrometheusWatchesAnEdge: a real Prometheus scrapes a real edge under load. Every panel of the dashboard shows something,
// no alert fires; then a node is killed, and the alert that says so does.
func TestPrometheusWatchesAnEdge(t *testing.T) {
	t.Parallel()
	tool(t, "prometheus")
	w := newWorld(t, layout{
		providers: []provider{{id: "p1", node: "n1", capacity: 2, long: 1, window: 100_000}, {id: "p2", node: "n2", capacity: 2}},
		models:    map[string][]string{"m": {"p1", "p2"}}, tokens: map[string]string{"app": "key"},
	})
	p := newPrometheus(w)
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-stop:
				return
			default:
				call(t.Context(), w.edge.openai, ask{token: "key", tag: "load"})
				time.Sleep(20 * time.Millisecond) // a little load, not all that there can be
			}
		}
	}()
	t.Cleanup(func() { <-over })
	defer close(stop)
	p.wantPanels(readBoard(t))
	promtool(t, string(fetch(t, w.edge.admin, "/metrics")), "check", "metrics")
	if got := p.firing(); len(got) > 0 {
		t.Errorf("alerts fire though nothing is wrong: %v", got)
	}
	w.nodes["n2"].kill()
	await(t, "the alerts of the node that was killed fire", func() bool {
		got := p.firing()
		return got["IopNodeVanished n2"] && got["IopProviderOffline n2"]
	})
	got := p.firing()
	delete(got, "IopRequestsFail") // what ran at the node that was killed did fail
	if len(got) != 2 {
		t.Errorf("other alerts fire as well: %v", got)
	}
}

// wantPanels waits until each query has data.
func (p *prometheus) wantPanels(b *board) {
	t := p.w.t
	t.Helper()
	sets := strings.NewReplacer("$__rate_interval", "15s", "$__range", "1m", "$edge", ".*", "$model", ".*", "$provider", ".*")
	for _, panel := range b.Panels {
		for _, q := range panel.Targets {
			expr, last := sets.Replace(q.Expr), error(nil)
			if withoutData()[panel.Title] != "" {
				if _, err := p.ask(expr); err != nil {
					t.Errorf("%q: %v", panel.Title, err)
				}
				continue
			}
			await(t, fmt.Sprintf("%q %s shows something: %s", panel.Title, q.RefID, expr), func() bool {
				var got []promSample
				if got, last = p.ask(expr); last != nil {
					t.Fatalf("%q: %v", panel.Title, last)
				}
				for i := range got {
					if !math.IsNaN(got[i].number()) {
						return true
					}
				}
				return false
			})
		}
	}
}

// firing are the alerts that fire, each with the node that it is about.
func (p *prometheus) firing() map[string]bool {
	got, err := p.ask(`ALERTS{alertstate="firing"}`)
	if err != nil {
		p.w.t.Fatal(err)
	}
	out := map[string]bool{}
	for _, s := range got {
		if s.Metric["alertname"] == "IopDiskNearFull" {
			continue // the disk is that of the machine, and others write on it
		}
		out[strings.TrimSpace(s.Metric["alertname"]+" "+s.Metric["node"])] = true
	}
	return out
}
