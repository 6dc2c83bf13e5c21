package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"iop/edged/adminapi"
)

// hostile is a name that would run if it were taken for markup.
const hostile = `"><img src=x onerror="window.owned=1"><script>window.owned=1</script>` + "\u202e&lt;b&gt;"

// dashboardHostile: names are text, wherever they are shown.
func dashboardHostile(t *testing.T, c *chromium) {
	f := newFeigned(t, func() adminapi.Frame {
		frame, one := feignedFrame(10), 1
		frame.Edge, frame.Leader, frame.Version, frame.Role = hostile, hostile, hostile, hostile
		frame.Providers = []adminapi.Provider{{ID: hostile, Node: hostile, Type: hostile, Label: hostile, Status: "degraded", Health: hostile, Cause: hostile, Capacity: &one, Connected: true}}
		frame.Nodes = []adminapi.Node{{ID: hostile, Alias: hostile, Version: hostile, Links: []adminapi.NodeLink{{Edge: hostile, State: hostile}}}}
		frame.Leases = []adminapi.LiveLease{{ID: 1, Request: hostile, Model: hostile, Provider: hostile, Node: hostile, State: hostile, Edge: hostile, Class: hostile}}
		frame.Waiters = []adminapi.LiveWaiter{{Request: hostile, Model: hostile, WaitsFor: hostile, Principal: hostile, Edge: hostile, Class: hostile, State: hostile}}
		frame.Members = []adminapi.LiveMember{{ID: hostile, Address: hostile, Version: hostile, Role: hostile, Suffrage: hostile, Reachable: true}}
		return frame
	})
	p := c.open(t, f.address(), screen{}).live()
	p.awaitText("h1", "onerror")
	for _, section := range []string{"providers", "queue", "leases"} {
		p.awaitText("#"+section, "onerror")
		p.do(fmt.Sprintf(`document.querySelector("#%s .open").click()`, section))
		p.awaitText("dialog[open] .sheet-body", "onerror")
		p.press("Close")
	}
	p.press("Cluster")
	p.awaitText("#members", "onerror")
	p.do(`document.querySelector("#nodes .open").click()`)
	p.awaitText("dialog[open]", "onerror")
	p.press("Close")
	p.press("Configuration")
	p.awaitText("#revisions", "onerror")
	p.press("Usage")
	p.awaitText("#usage", "onerror")
	if eval[bool](p, `"owned" in window || document.querySelectorAll("img:not([src='/ui/icon.svg']), body script").length > 0`) {
		t.Error("a name became markup")
	}
}

const (
	manyProviders = 1000
	manyWaiters   = 10000
)

// throng is a frame with thousands of rows.
func throng() adminapi.Frame {
	frame := feignedFrame(manyWaiters)
	frame.Queue.Pending = manyWaiters
	now := time.Now().UnixMilli()
	for i := range manyProviders {
		capacity, long := 8, 2
		frame.Providers = append(frame.Providers, adminapi.Provider{
			ID: fmt.Sprintf("gpu-%04d", i), Node: fmt.Sprintf("node-%03d", i/4), Type: "vllm", Connected: true, Status: "full", Health: "healthy", Enabled: true,
			Capacity: &capacity, InFlight: 8, LongCapacity: &long, LongInFlight: i % 3, Queued: 10 * i,
		})
	}
	for i := range manyWaiters {
		frame.Waiters = append(frame.Waiters, adminapi.LiveWaiter{
			Request: fmt.Sprintf("req-%05d", i), Model: "ornith:35b", Class: "normal", State: "waiting", Edge: "edge-1", Principal: "team-a",
			Place: uint64(1000 + i), EnqueuedAtMS: now - int64(manyWaiters-i), WaitsFor: "all 1000 providers are full", //nolint:gosec // small
		})
	}
	for i := range 2000 {
		frame.Leases = append(frame.Leases, adminapi.LiveLease{
			ID: uint64(i + 1), Request: fmt.Sprintf("run-%05d", i), Model: "ornith:35b", Provider: "gpu-0001", Node: "node-000", Class: "normal", State: "held", //nolint:gosec // small
			Edge: "edge-1", Generation: 1, GrantedAtMS: now,
		})
	}
	for i := range 600 {
		v := float64(100 + i)
		q := adminapi.Quantiles{P50: &v, P90: &v, P99: &v}
		frame.Pulse = append(frame.Pulse, adminapi.Sample{AtMS: now - int64(600-i)*1000, StepMS: 1000, Requests: 50, Pending: manyWaiters, InFlight: 8000, WaitMS: q, FirstByteMS: q, DurationMS: q})
	}
	return frame
}

// dashboardScale: 1,000 providers, 10,000 waiters and changes of hundreds of rows. The document holds what is in sight; how
// long frames take is told, and not judged.
func dashboardScale(t *testing.T, c *chromium) {
	f := newFeigned(t, throng)
	began := time.Now()
	p := c.open(t, f.address(), screen{width: 1920, height: 1080}).live()
	p.awaitText("#queue .count", "10,000")
	p.awaitText("#providers .count", "1,000")
	t.Logf("10,000 waiters and 1,000 providers are shown after %v", time.Since(began).Round(time.Millisecond))
	bounded := func(when string) {
		t.Helper()
		if n := eval[int](p, `document.querySelectorAll("*").length`); n > 4000 {
			t.Errorf("%s the document has %d elements", when, n)
		}
		for _, id := range []string{"queue", "providers", "leases"} {
			if n := eval[int](p, fmt.Sprintf(`document.querySelectorAll("#%s tbody tr").length`, id)); n < 10 || n > 120 {
				t.Errorf("%s %s has %d rows in the document", when, id, n)
			}
		}
	}
	bounded("at first")
	p.do(watchFrames)
	for i := range 25 {
		f.changes <- churn(i)
		time.Sleep(100 * time.Millisecond) // the rhythm of the feed
	}
	p.await("the changes have arrived", `document.querySelector('#queue tbody:not(.spacer) tr').dataset.key === "req-02500"`)
	t.Log("25 changes of 300 rows, ten a second: ", eval[string](p, "frames()"))
	p.do(watchFrames + `; const v = document.querySelector("#queue .scroller"); let n = 0; const go = () => { v.scrollTop += 2000; if (++n < 60) requestAnimationFrame(go); else window.scrolled = true }; go()`)
	p.await("it has scrolled", "window.scrolled")
	t.Log("scrolling by 2,000 pixels a frame: ", eval[string](p, "frames()"))
	bounded("after changes and scrolling")
	p.do(`document.querySelector("#queue .scroller").scrollTop = 1e9`)
	p.await("the last row is shown", `document.querySelector('#queue tr[data-key="req-12499"]')`)
	if at := eval[string](p, `document.querySelector('#queue tr[data-key="req-12499"]').getAttribute("aria-rowindex")`); at != "10001" {
		t.Errorf("the last row is number %s", at)
	}
	p.do(`const i = document.querySelector("#queue input"); i.value = "ornith req-0777"; i.dispatchEvent(new Event("input"))`)
	p.await("the filter holds", `document.querySelector("#queue .count").textContent === "10 of 10,000"`)
	p.do(`[...document.querySelectorAll("#providers .sort")].find((b) => b.textContent === "Wanted by").click()`)
	p.await("the most wanted is first", `document.querySelector("#providers tbody:not(.spacer) tr").dataset.key === "gpu-0999"`)
}

// churn is a change in which a hundred waiters go, a hundred come, and a hundred providers change.
func churn(round int) adminapi.Frame {
	frame := feignedFrame(manyWaiters)
	frame.Queue.Pending = manyWaiters
	now := time.Now().UnixMilli()
	for i := range 100 {
		gone, came := round*100+i, manyWaiters+round*100+i
		frame.WaitersGone = append(frame.WaitersGone, fmt.Sprintf("req-%05d", gone))
		frame.Waiters = append(frame.Waiters, adminapi.LiveWaiter{
			Request: fmt.Sprintf("req-%05d", came), Model: "ornith:35b", Class: "normal", State: "waiting", Edge: "edge-1", Place: uint64(1000 + came), EnqueuedAtMS: now, WaitsFor: "all are full", //nolint:gosec // small
		})
		capacity := 8
		frame.Providers = append(frame.Providers, adminapi.Provider{
			ID: fmt.Sprintf("gpu-%04d", i), Node: "node-000", Type: "vllm", Connected: true, Status: "full", Capacity: &capacity, InFlight: (round + i) % 9,
		})
	}
	v := float64(round)
	frame.Pulse = []adminapi.Sample{{AtMS: now, StepMS: 1000, Requests: 100, Pending: manyWaiters, WaitMS: adminapi.Quantiles{P50: &v}}}
	return frame
}

// watchFrames has the page measure its own frames and long tasks; frames() tells them.
var watchFrames = strings.Join([]string{
	`const gaps = []; const tasks = []; let last = performance.now(); window.on = {}`,
	`const me = window.on; const tick = (t) => { gaps.push(t - last); last = t; if (window.on === me) requestAnimationFrame(tick) }; requestAnimationFrame(tick)`,
	`new PerformanceObserver((l) => l.getEntries().forEach((e) => tasks.push(e.duration))).observe({type: "longtask"})`,
	`window.frames = () => { window.on = null; gaps.sort((a, b) => a - b); const at = (q) => Math.round(gaps[Math.floor((gaps.length - 1) * q)]); ` +
		`return gaps.length + " frames, " + at(.5) + " ms in the middle, " + at(.95) + " ms at p95, " + at(1) + " ms at most; " + tasks.length + " tasks over 50 ms, longest " + Math.round(Math.max(0, ...tasks)) + " ms" }`,
}, "; ")
