package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"iop/edged/metrics"
)

var update = flag.Bool("update", false, "write the golden list of names and docs/METRICS.md anew")

// full is metrics in which everything has happened, so that all series are there.
func full() *metrics.Metrics {
	m := metrics.New()
	m.SetNames([]string{"m"}, []string{"p"})
	m.Route("m", "p").Ended(metrics.OutcomeOK)
	x := m.Model("m")
	x.Duration(1, "")
	x.FirstByte(1, "")
	x.Wait(1, "")
	u := m.Usage(metrics.UsageKey{Principal: "a", Token: "b", Model: "m", Provider: "p"})
	u.Add(1, 1)
	u.Untold()
	m.Granted("normal")
	m.Returned("done")
	m.LinkUp("n")
	m.Refreshed("applied")
	m.AdminChanged("queue cancel", true)
	m.PeerUp("e2", true)
	m.PeerRoundTrip("e2", 1)
	m.PeerForwarded("e2", "accepted")
	m.DigestsCompared(time.Unix(1, 0), 0, 0)
	m.SetState(func() metrics.State {
		return metrics.State{
			Log:       metrics.LogState{SnapshotAt: time.Unix(1, 0)},
			Edge:      metrics.EdgeState{ConfigAt: time.Unix(1, 0), Now: time.Unix(2, 0), Version: "v", Go: "go", Certificates: []metrics.CertificateRow{{What: "edge", Left: time.Hour}}},
			Models:    []metrics.ModelRow{{ID: "m"}},
			Providers: []metrics.ProviderRow{{ID: "p", Node: "n"}},
			Nodes:     []metrics.NodeRow{{ID: "n", Links: []metrics.LinkRow{{Edge: "e", State: "ready"}}}},
		}
	})
	return m
}

// exported is what a scrape shows of ours: name → "type labels help".
func exported(text string) map[string]string {
	kinds, helps, labels := map[string]string{}, map[string]string{}, map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 4)
		switch {
		case strings.HasPrefix(line, "# HELP iop_"):
			helps[f[2]] = f[3]
		case strings.HasPrefix(line, "# TYPE iop_"):
			kinds[f[2]] = f[3]
		case strings.HasPrefix(line, "iop_"):
			name, rest, has := strings.Cut(f[0], "{")
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base := strings.TrimSuffix(name, suffix); kinds[base] == "histogram" {
					name = base
				}
			}
			if has {
				var list []string
				for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(rest, -1) {
					if l[1] != "le" {
						list = append(list, l[1])
					}
				}
				labels[name] = strings.Join(list, ",")
			}
		}
	}
	out := map[string]string{}
	for name, kind := range kinds {
		out[name] = fmt.Sprintf("%s {%s} %s", kind, labels[name], helps[name])
	}
	return out
}

// Fault: a metric that is renamed or gone, so that alerts and dashboards see nothing and nobody notices.
func TestNamesAreGolden(t *testing.T) {
	var lines []string
	shown := exported(scrape(t, full()))
	for name, what := range shown {
		lines = append(lines, name+" "+what)
	}
	slices.Sort(lines)
	golden(t, filepath.Join("testdata", "names.golden"), strings.Join(lines, "\n")+"\n")

	for _, d := range metrics.Catalog() {
		labels := slices.Clone(d.Labels)
		slices.Sort(labels)
		if want := fmt.Sprintf("%s {%s} %s", d.Type, strings.Join(labels, ","), d.Help); shown[d.Name] != want {
			t.Errorf("%s: exported as %q, the catalog has %q", d.Name, shown[d.Name], want)
		}
		delete(shown, d.Name)
	}
	for name := range shown {
		t.Errorf("%s is not in the catalog", name)
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	text := metrics.Document()
	golden(t, filepath.Join("..", "..", "docs", "METRICS.md"), text)
	for _, d := range metrics.Catalog() {
		for _, l := range d.Labels {
			if !strings.Contains(text, "| `"+l+"` | ") {
				t.Errorf("the label %s of %s is not explained", l, d.Name)
			}
		}
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s is not current: go test ./edged/metrics -update, and look at the difference", path)
	}
}

// What shows series of ours outside of Go. A name in it that nobody exports is an alert that never fires.
func TestNamesInAlertsAndDashboardExist(t *testing.T) {
	known := map[string]bool{}
	for _, d := range metrics.Catalog() {
		known[d.Name] = true
		if d.Type == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				known[d.Name+suffix] = true
			}
		}
	}
	configs := filepath.Join("..", "..", "configs")
	for _, path := range []string{
		filepath.Join(configs, "prometheus", "rules.yaml"), filepath.Join(configs, "prometheus", "rules_test.yaml"),
		filepath.Join(configs, "grafana", "iop.json"),
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\biop_[a-z0-9_]+`).FindAllString(string(text), -1)
		if len(names) < 20 {
			t.Errorf("%s: only %d names found", path, len(names))
		}
		for _, n := range names {
			if !known[n] {
				t.Errorf("%s: %s is exported by nobody", path, n)
			}
		}
	}
}

// Each alert leads on: how long, how bad, what it is, what to type, and a page that is there.
func TestAlertsLeadOn(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "configs", "prometheus", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	alerts := strings.Split(string(text), "- alert: ")[1:]
	if len(alerts) < 30 {
		t.Fatalf("%d alerts", len(alerts))
	}
	for _, a := range alerts {
		name, _, _ := strings.Cut(a, "\n")
		for _, want := range []string{"for: ", "severity: ", "summary: ", "description: ", "iop", "runbook: docs/failures/"} {
			if !strings.Contains(a, want) {
				t.Errorf("%s: no %s", name, want)
			}
		}
		for _, unit := range regexp.MustCompile(`systemctl \w+ ([\w-]+)`).FindAllStringSubmatch(a, -1) {
			if unit[1] != "iop-edged" && unit[1] != "iop-noded" { // as packages and noded service install name them
				t.Errorf("%s: there is no unit %s", name, unit[1])
			}
		}
		page := regexp.MustCompile(`runbook: (\S+)`).FindStringSubmatch(a)
		if page == nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(page[1]))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
