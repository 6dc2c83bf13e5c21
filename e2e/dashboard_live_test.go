package e2e

import (
	"fmt"
	"strings"
	"testing"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// held is a layout of two nodes whose runs are held until the test lets them go, on an edge that wants the admin token.
func held(b *backend.Backend) layout {
	return layout{
		providers: []provider{{id: "gpu-1", url: b.URL()}, {id: "gpu-2", node: "n2", url: b.URL()}},
		models:    map[string][]string{"m": {"gpu-1", "gpu-2"}},
		tokens:    map[string]string{"app": "key-of-app"},
		edge:      map[string]any{"admin": map[string]any{"token": adminToken, "view_token": viewToken}},
		log:       "info",
	}
}

const viewToken = "view-secret-of-the-test"

// dashboardWorks: the token is asked for; everything is shown, with reasons; a waiter is canceled and a provider drained
// from the page; what happens is seen without a reload; revisions and usage are told.
func dashboardWorks(t *testing.T, c *chromium) {
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead, Usage: true}})
	w := newEdgeOnly(t, held(b))
	w.startNode("n1")
	w.startNode("n2")
	awaitLinked(w, 2)
	admin := locked(w)
	count := func(n int) func() bool {
		return func() bool {
			q, err := admin.Queue(t.Context(), adminapi.Moment{})
			return err == nil && q.Pending == n
		}
	}
	var flights []*flight
	for range 5 {
		flights = append(flights, w.start(ask{token: "key-of-app"}))
	}
	await(t, "three wait", count(3))

	p := c.open(t, w.edge.admin, screen{})
	p.signIn("wrong")
	p.awaitText("dialog[open]", "missing or wrong")
	p.signIn(adminToken)
	p.live()
	p.awaitText("h1", "edge-1")
	p.awaitText(".tile", "3 of 64")
	p.await("both slots are taken", `[...document.querySelectorAll("#providers .slots-text")].filter((n) => n.textContent === "1 of 1").length === 2`)
	p.await("two leases are shown", `document.querySelectorAll("#leases tbody:not(.spacer) tr").length === 2`)
	rows := eval[[]string](p, `[...document.querySelectorAll("#queue tbody:not(.spacer) tr")].map((tr) => [...tr.cells].map((c) => c.textContent).join(" "))`)
	if len(rows) != 3 || !strings.HasPrefix(rows[0], "1 ") || !strings.HasPrefix(rows[2], "3 ") || !strings.Contains(rows[0], "full") || !strings.Contains(rows[0], "team-app") {
		t.Errorf("the queue is shown as %q", rows)
	}

	second := eval[string](p, `document.querySelectorAll("#queue .open")[1].textContent`)
	p.openRow("queue", second)
	p.awaitText("dialog[open]", "What has to happen")
	p.awaitText("dialog[open]", "Number 2 in the queue")
	p.awaitText("dialog[open]", "gpu-2")
	p.press("Cancel this request…")
	p.press("Leave it")
	p.press("Cancel this request…")
	p.press("Cancel the request")
	p.awaitText("#notices", second+" has left the queue")
	p.await("two wait in the page", `document.querySelectorAll("#queue .open").length === 2`)
	await(t, "two wait", count(2))

	p.openRow("providers", "gpu-2")
	p.press("Drain…")
	p.press("Drain it")
	p.press("Close")
	p.await("it is shown as drained", `document.querySelector('#providers tr[data-key="gpu-2"]').innerText.includes("draining")`)
	if l, err := admin.Providers(t.Context()); err != nil || !l.Providers[1].Draining {
		t.Errorf("the edge says %+v, %v", l, err)
	}

	b.LetAll()
	p.await("nobody waits", `document.querySelector("#queue").innerText.includes("Nobody waits")`)
	p.await("nothing runs", `document.querySelector("#leases").innerText.includes("Nothing runs")`)
	served := 0
	for _, f := range flights {
		switch a := f.wait(t); a.status {
		case 200:
			served++
		case 503:
			a.wantError(t, 503, "canceled_by_operator")
		}
	}
	if served != 4 {
		t.Errorf("%d were served, want all but the canceled one", served)
	}
	p.await("the pulse is drawn", `document.querySelector(".line[d^=M]")`)

	l := w.layout
	l.providers[0].capacity = 7
	if r, err := admin.Refresh(t.Context(), adminapi.RefreshRequest{File: l.edgeFile("edge-1", w.dataDir())}); err != nil || r.Result != adminapi.RefreshApplied {
		t.Fatalf("%+v %v", r, err)
	}
	p.await("the new capacity is shown", `document.querySelector('#providers tr[data-key="gpu-1"]').innerText.includes("0 of 7")`)
	p.press("Configuration")
	p.awaitText("#revisions", "Revision 2")
	p.awaitText("#revisions", "applied by a refresh")
	p.awaitText("#revisions", "nodes[n1].providers[gpu-1].capacity − 1 + 7")
	p.press("Usage")
	p.awaitText("#usage", "team-app")
	p.awaitText("#usage", "4 requests")
	p.press("Cluster")
	p.awaitText("#nodes", "n2")
	p.press("Sign out")
	p.await("the token is forgotten", `sessionStorage.length === 0 && document.querySelector("dialog[open] #token")`)
	if text := eval[string](p, "document.body.innerText"); strings.Contains(text, "gpu-1") {
		t.Error("what was seen is still there after signing out")
	}
}

// dashboardOpen: an edge without a token shows all and changes nothing, and says how to change that. Without nodes it says
// what to type.
func dashboardOpen(t *testing.T, c *chromium) {
	w := newEdgeOnly(t, layout{})
	p := c.open(t, w.edge.admin, screen{}).live()
	p.awaitText("#providers", "iopctl nodes add NAME")
	p.awaitText("footer", "edge.admin.token")
	p.press("Cluster")
	p.awaitText("#nodes", "iopctl nodes add NAME")
	p.press("Usage")
	p.awaitText("#usage", "Nothing ran in these days")
}

// dashboardViewToken: it sees all, and is offered nothing that the edge would refuse.
func dashboardViewToken(t *testing.T, c *chromium) {
	b := newBackend(t, backend.Options{})
	w := newEdgeOnly(t, held(b))
	w.startNode("n1")
	awaitLinked(w, 1)
	p := c.open(t, w.edge.admin, screen{})
	p.signIn(viewToken)
	p.live()
	p.openRow("providers", "gpu-1")
	p.awaitText("dialog[open] .sheet-foot", "signed in with the view token")
	if n := eval[int](p, `document.querySelectorAll("dialog[open] .sheet-foot button").length`); n != 0 {
		t.Errorf("%d actions are offered", n)
	}
	p.failing(true)
	status := eval[int](p, `fetch("/drain", {method: "POST", body: JSON.stringify({provider: "gpu-1", on: true}), headers: {"Content-Type": "application/json", Authorization: "Bearer `+viewToken+`"}}).then((r) => r.status)`)
	if status != 403 {
		t.Errorf("the edge answers %d to a drain with the view token", status)
	}
}

// dashboardReconnects: when the edge is killed the page says so and keeps what it knew; when it is back, the page is too, and
// what happened meanwhile is seen.
func dashboardReconnects(t *testing.T, c *chromium) {
	b := newBackend(t, backend.Options{})
	l := held(b)
	l.throttled = true
	w := newEdgeOnly(t, l)
	w.startNode("n1")
	awaitLinked(w, 1)
	p := c.open(t, w.edge.admin, screen{})
	p.signIn(adminToken)
	p.live()
	p.awaitText("#providers", "gpu-1")
	p.failing(true)
	w.edge.kill()
	p.awaitText("#connection", "reconnecting")
	p.awaitText(".stale", "does not answer")
	p.awaitText("#providers", "gpu-1")
	p.press("Try now") // it tries in vain, and goes on by itself
	w.layout.edge["listen"] = map[string]any{"openai": w.edge.openai, "node": w.edge.node, "admin": w.edge.admin}
	w.startEdge()
	p.live()
	p.await("the note is gone", `document.querySelector(".stale").hidden`)
	w.startNode("n2")
	awaitLinked(w, 2)
	p.await("what came later is seen", `document.querySelector('#providers tr[data-key="gpu-2"]').innerText.includes("available")`)
}

// dashboardGap: a frame is missing, so the page asks for the whole again and does not show what it can't know.
func dashboardGap(t *testing.T, c *chromium) {
	round := 0
	f := newFeigned(t, func() adminapi.Frame {
		round++
		frame := feignedFrame(10)
		frame.Nodes = []adminapi.Node{{ID: fmt.Sprintf("node-of-%d", round), Connected: true, Links: []adminapi.NodeLink{}}}
		return frame
	})
	p := c.open(t, f.address(), screen{}).live()
	p.press("Cluster")
	p.awaitText("#nodes", "node-of-1")
	late := feignedFrame(10)
	late.Seq = 9
	late.Nodes = []adminapi.Node{{ID: "from-nowhere", Links: []adminapi.NodeLink{}}}
	f.changes <- late
	p.awaitText("#nodes", "node-of-2")
	if text := eval[string](p, `document.querySelector("#nodes").innerText`); strings.Contains(text, "nowhere") || strings.Contains(text, "node-of-1") {
		t.Errorf("the page shows %q", text)
	}
	if n := f.viewers.Load(); n != 2 {
		t.Errorf("%d connections, want two", n)
	}
}

// dashboardAnew: what waits for a fact goes on with the new page when the old one goes under its question.
func dashboardAnew(t *testing.T, c *chromium) {
	f := newFeigned(t, small)
	p := c.open(t, f.address(), screen{}).live()
	p.do(`window.old = true; setTimeout(() => location.reload(), 100)`)
	p.await("the new page is there", `window.old ? new Promise(() => {}) : document.querySelector("#queue .open")`)
}
