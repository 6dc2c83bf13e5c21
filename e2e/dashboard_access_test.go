package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"iop/edged/adminapi"
)

// small is a frame with something of everything.
func small() adminapi.Frame {
	frame := throng()
	frame.Waiters, frame.Providers, frame.Leases = frame.Waiters[:60], frame.Providers[:40], frame.Leases[:30]
	frame.Queue = adminapi.Queue{Pending: 60, Max: 64}
	p := frame.Providers
	p[1].Status, p[1].Draining = "draining", true
	p[2].Status, p[2].Health, p[2].Cause = "degraded", "degraded", "GET /health: connection refused"
	p[3].Status, p[3].Connected = "unavailable", false
	p[4].Capacity = nil
	p[5].Status = "disabled"
	frame.Nodes = []adminapi.Node{
		{ID: "node-000", Alias: "Rack 1", Connected: true, Version: "1.0", Links: []adminapi.NodeLink{{Edge: "edge-1", Generation: 2, State: "ready"}}},
		{ID: "node-001", Links: []adminapi.NodeLink{}},
	}
	frame.Members = []adminapi.LiveMember{
		{ID: "edge-1", Address: "10.0.0.1:9443", Suffrage: "voter", Leader: true, Reachable: true, Role: "leader", Applied: 10, Version: "test"},
		{ID: "edge-2", Address: "10.0.0.2:9443", Suffrage: "voter", Reachable: false},
	}
	return frame
}

// dashboardKeyboard: everything is reached and done with the keyboard alone, and what has the focus is seen.
func dashboardKeyboard(t *testing.T, c *chromium) {
	f := newFeigned(t, small)
	p := c.open(t, f.address(), screen{}).live()
	p.awaitText("#queue", "req-00000")
	p.keys(kb.Tab)
	p.await("the first stop is the skip link", `document.activeElement.matches(".skip") && document.activeElement.getBoundingClientRect().top >= 0`)
	p.keys(kb.Enter)
	p.await("it leads to the content", `document.activeElement.id === "main"`)
	stops := 0
	for !eval[bool](p, `document.activeElement.matches("#queue .open")`) {
		p.keys(kb.Tab)
		if stops++; stops > 60 {
			t.Fatal("the queue is not reached with 60 stops")
		}
		p.await("what has the focus is seen", `(() => { const n = document.activeElement; if (n === document.body) return true; const seen = n.matches(".choice input") ? n.nextSibling : n;
			const s = getComputedStyle(seen); const r = seen.getBoundingClientRect(); return parseFloat(s.outlineWidth) >= 2 && s.outlineStyle !== "none" && r.bottom > 0 && r.top < innerHeight })()`)
	}
	t.Logf("%d stops from the content to the queue", stops)
	p.keys(kb.ArrowDown, kb.ArrowDown)
	p.await("the arrows go down", `document.activeElement.textContent === "req-00002"`)
	p.keys(kb.End)
	p.await("End goes to the last", `document.activeElement.textContent === "req-00059"`)
	p.keys(kb.Home)
	p.await("Home goes to the first", `document.activeElement.textContent === "req-00000"`)
	gone := feignedFrame(64)
	gone.WaitersGone = []string{"req-00000"}
	f.changes <- gone
	p.await("the focus stays in the table when its row goes", `document.activeElement.textContent === "req-00001"`)
	p.keys(kb.Enter)
	p.awaitText("dialog[open]", "Request req-00001")
	p.awaitText("dialog[open]", "What has to happen")
	p.keys(kb.Escape)
	p.await("Escape leads back", `!document.querySelector("dialog") && document.activeElement.textContent === "req-00001"`)
}

// dashboardAxe holds the page against axe-core's rules: names, roles, structure, contrast; in both schemes and on a phone.
func dashboardAxe(t *testing.T, c *chromium) {
	dir := packages(t, filepath.Join("clients", "axe"))
	axe, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	f := newFeigned(t, small)
	for _, on := range []screen{{}, {dark: true}, {width: 390, height: 844, phone: true}} {
		p := c.open(t, f.address(), on)
		p.run(command("Page.setBypassCSP", map[string]any{"enabled": true})) // axe makes markup of its own
		p.run(command("Page.reload", nil))
		p.live()
		p.awaitText("#queue", "req-00000")
		eval[bool](p, string(axe)+"; true")
		check := func(where string) {
			t.Helper()
			for _, v := range eval[[]string](p, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + n.any.concat(n.all, n.none).map((c) => c.message).join("; ")).join(" | ")))`) {
				t.Errorf("%s, %+v: %s", where, on, v)
			}
		}
		check("live")
		for _, view := range []string{"Cluster", "Configuration", "Usage"} {
			if on != (screen{}) {
				break // what differs elsewhere is colours and widths, which the live view has all of
			}
			p.press(view)
			p.awaitText("main", map[string]string{"Cluster": "node-001", "Configuration": "Revision 2", "Usage": "onerror"}[view])
			check(view)
		}
		if on.phone {
			continue
		}
		p.press("Live")
		p.openRow("queue", "req-00000")
		p.awaitText("dialog[open]", "What has to happen")
		check("request")
		p.press("Close")
		p.openRow("providers", "gpu-0002")
		p.press("Drain…")
		check("question")
	}
}

// dashboardWidths: from 360 pixels to 4K nothing is wider than the screen, in any view.
func dashboardWidths(t *testing.T, c *chromium) {
	f := newFeigned(t, small)
	p := c.open(t, f.address(), screen{}).live()
	p.awaitText("#queue", "req-00000")
	for _, on := range []screen{{width: 360, height: 640, phone: true}, {width: 768, height: 1024}, {width: 1280, height: 800}, {width: 3840, height: 2160}} {
		p.screen(on)
		for _, view := range []string{"Cluster", "Configuration", "Usage", "Live"} {
			p.press(view)
			p.await(fmt.Sprintf("%s fits %d pixels", view, on.width), fmt.Sprintf(`innerWidth === %d && document.documentElement.scrollWidth <= innerWidth`, on.width))
			if wide := eval[[]string](p, `[...document.querySelectorAll("main *, header *")].filter((n) => n.checkVisibility() && !n.closest(".unseen, .plain, pre, .scroller, nav, svg, .choice") && n.getBoundingClientRect().right > innerWidth + 1).map((n) => n.tagName + "." + n.className)`); len(wide) > 0 {
				t.Errorf("%s at %d pixels is cut off: %s", view, on.width, strings.Join(wide, ", "))
			}
		}
		p.openRow("queue", "req-00000")
		p.awaitText("dialog[open]", "What has to happen")
		if over := eval[bool](p, `document.querySelector("dialog[open]").getBoundingClientRect().right > innerWidth || document.querySelector("dialog[open]").getBoundingClientRect().left < 0`); over {
			t.Errorf("the sheet is wider than %d pixels", on.width)
		}
		p.press("Close")
	}
}
