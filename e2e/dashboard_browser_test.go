package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdp "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browserVar set to 1 makes it a failure that there is no Chromium.
const browserVar = "E2E_BROWSER"

// chromium is one browser; its pages know nothing of each other.
type chromium struct {
	ctx context.Context
}

// newChromium starts a browser without a window, or skips the test if there is none.
func newChromium(t *testing.T) *chromium {
	t.Helper()
	path := findChromium()
	if path == "" {
		if os.Getenv(browserVar) == "1" {
			t.Fatal("no Chromium is installed (Debian: apt-get install chromium)")
		}
		t.Skip("no Chromium is installed (Debian: apt-get install chromium); E2E_BROWSER=1 makes this a failure")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.WSURLReadTimeout(patience),
	}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // it closes the browser and waits for it
		cancel()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return &chromium{ctx: ctx}
}

func findChromium() string {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	return ""
}

// screen is what a page is seen on.
type screen struct {
	width, height int64 // CSS pixels; 0 = 1280 by 800
	scale         float64
	dark          bool
	phone         bool
}

// tab is a page of the dashboard. At its end it must have asked nobody but its own edge, and complained of nothing.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	asked    []string // URLs
	faults   []string // errors, warnings and violations that the browser told
	outage   bool     // failing calls are expected: they are no faults
	finished bool
}

// open shows the page of an admin listener.
func (c *chromium) open(t *testing.T, admin string, on screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext())
	p := &tab{t: t, ctx: ctx, origin: "http://" + admin}
	t.Cleanup(func() {
		p.finish()
		cancel()
	})
	p.run() // it opens the target
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	p.run(command("Network.enable", nil), command("Log.enable", nil), command("Runtime.enable", nil))
	p.screen(on)
	p.run(chromedp.Navigate(p.origin + "/"))
	return p
}

// command is one of the browser's protocol.
func command(method string, params map[string]any) chromedp.Action[chromedp.Void] {
	if params == nil {
		params = map[string]any{}
	}
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		var out any
		return t.Call(ctx, method, params, &out)
	})
}

// screen has the page seen on another screen.
func (p *tab) screen(s screen) {
	p.t.Helper()
	scheme := "light"
	if s.dark {
		scheme = "dark"
	}
	p.run(
		command("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}),
		command("Emulation.setDeviceMetricsOverride", map[string]any{
			"width": or(s.width, 1280), "height": or(s.height, 800), "deviceScaleFactor": or(s.scale, 1), "mobile": s.phone,
		}),
		command("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": s.phone}),
	)
}

// listen notes what the page asks for and what the browser complains of.
func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.asked = append(p.asked, e.Request.URL)
	case *cdp.EventExceptionThrown:
		p.faults = append(p.faults, "exception: "+thrown(e.ExceptionDetails))
	case *cdp.EventConsoleAPICalled:
		if slices.Contains([]cdp.ConsoleAPICalledType{"error", "warning", "assert"}, e.Type) {
			said, _ := json.Marshal(e.Args)
			p.faults = append(p.faults, "console: "+string(said))
		}
	case *log.EventEntryAdded:
		if e.Entry.Source == "network" && (p.outage || strings.Contains(e.Entry.Text, " 401 ")) {
			return // the browser tells of every 401, and it is how an edge asks for a token
		}
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			p.faults = append(p.faults, fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

func thrown(d *cdp.ExceptionDetails) string {
	text := d.Text
	if d.Exception != nil {
		text += " " + d.Exception.Description
	}
	return text
}

// failing says that calls of the page may fail from now on, or may not any more.
func (p *tab) failing(may bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outage = may
}

func (p *tab) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return
	}
	p.finished = true
	for _, f := range p.faults {
		p.t.Errorf("the browser complains: %s", f)
	}
	for _, url := range p.asked {
		if !strings.HasPrefix(url, p.origin+"/") && !strings.HasPrefix(url, "data:") {
			p.t.Errorf("the page asked for %s, which is not its edge", url)
		}
		if strings.Contains(url, "token") || strings.Contains(url, "secret") {
			p.t.Errorf("a token in a URL: %s", url)
		}
	}
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if p.ctx.Err() == nil && chromedp.FromContext(p.ctx).Target == nil {
		ctx = p.ctx // the first one makes the target, which lives as long as its context
	}
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("browser: %v", err)
	}
}

// eval computes an expression in the page; a promise is waited for.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	out, err := asked[T](p, expression)
	if err != nil {
		p.t.Fatalf("in the page: %s: %v", expression, err)
	}
	return out
}

func asked[T any](p *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// reloaded says that there was no answer because the page was just being loaded anew, as it is by signing out: the next
// question is put to the new one.
func reloaded(err error) bool {
	if err == nil {
		return false
	}
	return slices.ContainsFunc([]string{
		"Inspected target navigated or closed", "Execution context was destroyed", "Cannot find context with specified id",
		"Cannot find default execution context", "Promise was collected",
	}, func(said string) bool { return strings.Contains(err.Error(), said) })
}

// do runs a script in the page.
func (p *tab) do(script string) {
	p.t.Helper()
	eval[bool](p, "(() => {"+script+"; return true})()")
}

// await waits until an expression is true in the page.
func (p *tab) await(what, expression string) {
	p.t.Helper()
	end := time.Now().Add(patience)
	for {
		is, err := asked[bool](p, "Promise.resolve("+expression+").then(Boolean)")
		if err != nil && !reloaded(err) {
			p.t.Fatalf("in the page: %s: %v", expression, err)
		}
		if is {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("after %v still not: %s\n%s\nThe page says:\n%s", patience, what, expression, tail(eval[string](p, "document.body.innerText"), 60))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// awaitText waits until the part of the page that a selector names has a text.
func (p *tab) awaitText(selector, text string) {
	p.t.Helper()
	p.await(fmt.Sprintf("%s says %q", selector, text), fmt.Sprintf("document.querySelector(%q)?.innerText.replace(/\\s+/g, \" \").includes(%q)", selector, text))
}

// press presses the button with a name in the topmost dialog, or in the page if there is none.
func (p *tab) press(name string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...([...document.querySelectorAll("dialog[open]")].at(-1) ?? document).querySelectorAll("button, a, summary")].find((b) => (b.getAttribute("aria-label") ?? b.textContent) === %q && b.checkVisibility())`, name)
	p.click("a button "+name, find)
}

// openRow presses a row's button in a section.
func (p *tab) openRow(section, name string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("#%s .open")].find((b) => b.textContent === %q)`, section, name)
	p.click("a row "+name, find)
}

// click waits for an element and presses it at once: the page may change it any time.
func (p *tab) click(what, find string) {
	p.t.Helper()
	p.await("there is "+what, "(() => { const found = "+find+"; found?.click(); return found })()")
}

// keys types as a keyboard does: to what has the focus.
func (p *tab) keys(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		p.run(chromedp.KeyEvent(k))
	}
}

// signIn fills in the dialog that asks for a token.
func (p *tab) signIn(token string) {
	p.t.Helper()
	p.await("the page asks for a token", `document.querySelector("dialog[open] #token")`)
	p.do(fmt.Sprintf(`document.querySelector("dialog[open] #token").value = %q`, token))
	p.press("Sign in")
}

// live waits until the feed is there.
func (p *tab) live() *tab {
	p.t.Helper()
	p.await("the page is live", `document.querySelector("#connection .word")?.textContent === "live"`)
	return p
}
