package refresh

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"iop/configs"
)

// leaves gives every place of the schema at which something can change, by walking the types.
func leaves(t reflect.Type, at string, into map[string]bool) {
	switch {
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			next := at
			if key := keyOf(&f); key != "" && at != "" {
				next = at + "." + key
			} else if key != "" {
				next = key
			}
			leaves(f.Type, next, into)
		}
	case isList(t):
		into[at+"[]"] = true
		leaves(t.Elem(), at+"[]", into)
	case t.Kind() == reflect.Map:
		into[at+"[]"] = true
	case isGroup(t):
		into[at] = true
		leaves(t.Elem(), at, into)
	default:
		into[at] = true
	}
}

func schema() map[string]bool {
	all := map[string]bool{}
	leaves(reflect.TypeFor[configs.Edge](), "", all)
	return all
}

func TestEveryLeafOfTheSchemaHasAClass(t *testing.T) {
	all, c := schema(), newClasses()
	if len(all) < 80 {
		t.Fatalf("the walk finds only %d leaves", len(all))
	}
	for _, leaf := range slices.Sorted(maps.Keys(all)) {
		if _, known := c.of(leaf); !known {
			t.Errorf("no rule classifies %s: decide in edged/refresh/class.go whether a running edge can take a change of it", leaf)
		}
	}
}

func TestEveryRuleHasALeaf(t *testing.T) {
	all := schema()
	seen := map[string]bool{}
	for _, r := range rules {
		if seen[r.at] {
			t.Errorf("%s has two rules", r.at)
		}
		seen[r.at] = true
		used := all[r.at]
		for leaf := range all {
			used = used || r.below && strings.HasPrefix(leaf, r.at) && strings.ContainsRune(".[", rune(leaf[len(r.at)]))
		}
		if !used {
			t.Errorf("the rule for %s fits nothing in the schema", r.at)
		}
	}
}

// A leaf that nobody classified must never be applied in passing.
func TestAnUnknownLeafNeedsARestart(t *testing.T) {
	for _, place := range []string{"models[].new", "nodes[].providers[].new", "nodes[].new", "openai.new", "new", "new[].x", ""} {
		if class, known := newClasses().of(place); known || class != RestartRequired {
			t.Errorf("%q: %s, known %v", place, class, known)
		}
	}
}

// TestTheTable is the table of docs/CONFIG.md, leaf by leaf.
func TestTheTable(t *testing.T) {
	live := []string{
		"responses.retention_ms", "responses.max_bytes", "provider_pool.max_queue", "provider_pool.queue_timeout_ms", "provider_pool.startup_grace_ms", "provider_pool.reattach_window_ms",
		"provider_pool.fence_timeout_ms", "provider_pool.fairness", "long_context_threshold_tokens", "models[]",
		"openai.principals[]", "openai.principals[].ref", "openai.principals[].models", "openai.principals[].max_in_flight",
		"openai.principals[].max_queued", "openai.principals[].operator", "models[].id", "models[].providers[]",
		"nodes[].providers[].capabilities", "nodes[].providers[].capacity", "nodes[].providers[].long_context_capacity", "nodes[].providers[].priority",
		"nodes[].providers[].enabled", "nodes[].providers[].health_check", "nodes[].providers[].health_check.path",
		"nodes[].providers[].health_check.interval_ms", "nodes[].providers[].models", "nodes[].providers[].context_window_tokens",
		"nodes[].providers[].total_context_tokens", "nodes[].runtime.concurrency", "nodes[].token_hash_sha256",
	}
	for leaf := range schema() {
		class, _ := newClasses().of(leaf)
		want := RestartRequired
		if slices.Contains(live, leaf) || strings.HasPrefix(leaf, "models[].generation.") {
			want = Live
		}
		if class != want {
			t.Errorf("%s is %s, want %s", leaf, class, want)
		}
	}
	for _, leaf := range live {
		if !schema()[leaf] {
			t.Errorf("%s is not in the schema", leaf)
		}
	}
}

// filled gives an edge in which every leaf has a value that depends on n, so that two of them differ everywhere but in ids.
func filled(n int) *configs.Edge {
	e := &configs.Edge{}
	fill(reflect.ValueOf(e).Elem(), n)
	return e
}

func fill(v reflect.Value, n int) {
	switch t := v.Type(); {
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			fill(v.Field(i), n)
		}
	case isList(t):
		v.Set(reflect.MakeSlice(t, 1, 1))
		fill(v.Index(0), n)
		v.Index(0).Field(idField(t.Elem())).SetString("same")
	case t.Kind() == reflect.Slice:
		v.Set(reflect.ValueOf([]string{fmt.Sprint("t", n)}))
	case t.Kind() == reflect.Map:
		entry := reflect.New(t.Elem()).Elem()
		fill(entry, n)
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(reflect.ValueOf("same"), entry)
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		fill(v.Elem(), n)
	case t.Kind() == reflect.String:
		v.SetString(fmt.Sprint("t", n))
	case t.Kind() == reflect.Bool:
		v.SetBool(n%2 == 0)
	case t.Kind() == reflect.Float64:
		v.SetFloat(float64(n))
	default:
		v.SetInt(int64(n))
	}
}

// No leaf may be overlooked when two configurations are compared, and none may show a secret.
func TestDiffFindsAChangeOfEveryLeaf(t *testing.T) {
	changes := Diff(filled(2), filled(3))
	got := map[string]bool{}
	for _, c := range changes {
		place := strings.NewReplacer("[same]", "[]", ".same", "[]").Replace(c.Path)
		got[place] = true
		if class, _ := newClasses().of(place); class != c.Class {
			t.Errorf("%s is %s, want %s", c.Path, c.Class, class)
		}
		secret := strings.HasSuffix(c.Path, "token") || c.Path == "edge.traces.headers.same" || strings.HasSuffix(c.Path, hashKey)
		if shown := string(c.Old) + string(c.New); secret != strings.Contains(shown, "sha256:") {
			t.Errorf("%s shows %s", c.Path, shown)
		}
	}
	for leaf := range schema() {
		if strings.HasSuffix(leaf, "[]") && !strings.Contains(leaf, "providers[]") || leaf == "nodes[].providers[]" {
			continue // of lists: entries that come and go
		}
		if strings.HasSuffix(leaf, ".demo") || strings.HasSuffix(leaf, ".ollama") || strings.HasSuffix(leaf, ".cli") || strings.HasSuffix(leaf, ".cli.fields") || strings.HasSuffix(leaf, ".health_check") || strings.HasSuffix(leaf, "[].id") || strings.HasSuffix(leaf, "token_ref") || strings.HasSuffix(leaf, "principals[].ref") {
			continue // of groups, that come and go; of ids, that name an entry
		}
		if !got[leaf] {
			t.Errorf("a change of %s is not found", leaf)
		}
	}
	if again := Diff(filled(2), filled(2)); len(again) != 0 {
		t.Errorf("equal ones differ: %v", again)
	}
}

// What is live goes over to the target, what needs a restart stays as it runs: leaf by leaf.
func TestLivePartTakesTheLiveLeaves(t *testing.T) {
	running, candidate := filled(2), filled(3)
	target := &configs.Edge{Edge: running.Edge, Cluster: *LivePart(&running.Cluster, &candidate.Cluster)}
	for _, c := range Diff(running, target) {
		if c.Class != Live {
			t.Errorf("%s went over", c.Path)
		}
	}
	target.Edge = candidate.Edge
	for _, c := range Diff(target, candidate) {
		if c.Class != RestartRequired {
			t.Errorf("%s was left", c.Path)
		}
	}
}
