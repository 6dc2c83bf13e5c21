package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// peersVar makes TestPeers run. It takes minutes, and has to find the peers.
const peersVar = "E2E_PEERS"

// trial puts one gateway in front of the backend and observes something. What it returns are the cells of the gateway's row.
type trial struct {
	title, text string
	columns     []string
	whole       bool // not for partial peers
	run         func(t *testing.T, p peer) []string
}

// TestPeers puts iop and others in front of the same backend, observes them alike, and with -update writes what was
// observed into docs/COMPARISON.md. It asserts what iop promises, and nothing of the others. E2E_PEERS=1 makes it run;
// E2E_PEERS_ONLY (names, by commas) narrows it.
func TestPeers(t *testing.T) {
	if os.Getenv(peersVar) != "1" {
		t.Skip("the comparison with other gateways runs with " + peersVar + "=1; see docs/COMPARISON.md")
	}
	present := presentPeers(t)
	paper := newPaper(present)
	for _, x := range trials() {
		rows := [][]string{}
		for _, p := range present {
			if x.whole && p.partial {
				continue
			}
			t.Run(x.title+"/"+p.name, func(t *testing.T) {
				row := append([]string{p.name}, x.run(t, p)...)
				t.Log(strings.Join(row, " | "))
				rows = append(rows, row)
			})
		}
		paper.add(x.title, x.text, x.columns, rows)
	}
	t.Run("speed", func(t *testing.T) { paper.addSpeed(t, present) })
	paper.finish(t)
}

// presentPeers are those that are here, iop first.
func presentPeers(t *testing.T) []peer {
	only := strings.FieldsFunc(os.Getenv(peersVar+"_ONLY"), func(r rune) bool { return r == ',' })
	var out []peer
	for _, p := range peers() {
		if len(only) > 0 && !slices.Contains(only, p.name) {
			continue
		}
		if p.version = p.find(); p.version == "" {
			t.Logf("%s is not here", p.name)
			continue
		}
		out = append(out, p)
	}
	return out
}

func trials() []trial {
	return []trial{capacityTrial(), boundTrial(), reloadTrial(), reloadLoadTrial(), killTrial(), breakTrial(), leaveTrial()}
}
