package e2e

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"iop/edged/adminapi"
)

// screenshotsVar names the directory that TestScreenshots writes into (make screenshots).
const screenshotsVar = "E2E_SCREENSHOTS"

// TestScreenshots makes the pictures of docs/DASHBOARD.md from a real edge under load. E2E_SCREENSHOTS_LOAD is how long the
// load runs before them.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv(screenshotsVar)
	if dir == "" {
		t.Skip("make screenshots runs it: it writes into " + screenshotsVar)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := newChromium(t)
	w := newShowWorld(t)
	before, err := time.ParseDuration(cmp.Or(os.Getenv("E2E_SCREENSHOTS_LOAD"), "100s"))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(before) // charts are of time that passed
	desk, phone := screen{width: 1440, height: 1000}, screen{width: 390, height: 844, scale: 2, phone: true}
	dark := desk
	dark.dark = true
	for name, on := range map[string]screen{"dashboard-light": desk, "dashboard-dark": dark, "dashboard-phone": phone} {
		p := c.open(t, w.edge.admin, on)
		p.signIn(adminToken)
		p.live()
		p.do(`document.querySelector('.choice input[value="2m"]').click()`)
		p.await("the chart is drawn", `document.querySelector(".line[d]")`)
		p.shoot(filepath.Join(dir, name+".png"))
	}
	p := c.open(t, w.edge.admin, desk)
	p.signIn(adminToken)
	p.live()
	p.await("somebody waits", `document.querySelector("#queue .open")`)
	p.do(`[...document.querySelectorAll("#queue tbody:not(.spacer) tr")].at(-8)?.querySelector(".open").click()`)
	p.awaitText("dialog", "What has to happen")
	p.shoot(filepath.Join(dir, "dashboard-why.png"))
	for name, view := range map[string]string{"dashboard-usage": "Usage", "dashboard-configuration": "Configuration"} {
		p := c.open(t, w.edge.admin, screen{width: 1440, height: 440})
		p.signIn(adminToken)
		p.live()
		p.press(view)
		time.Sleep(time.Second) // what it asks for
		p.shoot(filepath.Join(dir, name+".png"))
	}
}

const adminToken = "admin-secret-of-the-test"

// newShowWorld starts an edge with something to see: several nodes, one of them away, a drained provider, revisions, and
// clients that keep it busy until the test ends.
func newShowWorld(t *testing.T) *world {
	demo := func(first, word int) map[string]any {
		return map[string]any{"words": 40, "word_interval_ms": word, "first_token_ms": first}
	}
	l := layout{
		providers: []provider{
			{id: "gpu-1-vllm", node: "gpu-1", capacity: 8, long: 2, window: 32000, demo: demo(120, 40)},
			{id: "gpu-2-vllm", node: "gpu-2", capacity: 8, long: 2, window: 32000, demo: demo(150, 45)},
			{id: "gpu-3-vllm", node: "gpu-3", capacity: 8, long: 2, window: 32000, demo: demo(150, 45)},
			{id: "mac-ollama", node: "mac-studio", capacity: 3, long: 1, window: 32000, demo: demo(300, 90)},
			{id: "mac-embed", node: "mac-studio", capacity: 4, demo: demo(10, 2)},
			{id: "coder", node: "agents", capacity: 2, demo: demo(800, 160)},
		},
		models: map[string][]string{
			"ornith:35b": {"gpu-1-vllm", "gpu-2-vllm", "gpu-3-vllm"}, "ornith-fast": {"mac-ollama", "gpu-1-vllm"}, "embed-small": {"mac-embed"}, "coder": {"coder"},
		},
		tokens: map[string]string{"chat-app": "key-chat", "research": "key-research", "batch": "key-batch", "ci": "key-ci"},
		queue:  128, threshold: 200, log: "warn",
		edge: map[string]any{"admin": map[string]any{"token": adminToken}},
	}
	w := newEdgeOnly(t, l)
	for _, n := range l.nodes() {
		if n != "gpu-3" {
			w.startNode(n)
		}
	}
	awaitLinked(w, len(l.nodes())-1)
	loadOf(w, []demand{
		{model: "ornith:35b", tokens: "key-chat", clients: 14},
		{model: "ornith:35b", tokens: "key-research", clients: 6, long: true},
		{model: "ornith-fast", tokens: "key-chat", clients: 8},
		{model: "embed-small", tokens: "key-batch", clients: 3},
		{model: "coder", tokens: "key-ci", clients: 5},
	})
	admin := locked(w)
	l.providers[4].capacity, l.providers[0].priority = 6, 1
	l.queue = 256
	if r, err := admin.Refresh(t.Context(), adminapi.RefreshRequest{File: l.edgeFile("edge-1", w.dataDir())}); err != nil || r.Result != adminapi.RefreshApplied {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := admin.Drain(t.Context(), adminapi.Drain{Provider: "gpu-2-vllm", On: true}); err != nil {
		t.Fatal(err)
	}
	return w
}

// locked is a client of an edge that wants the admin token.
func locked(w *world) *adminapi.Client {
	w.t.Helper()
	c, err := adminapi.NewClient(adminapi.ClientOptions{Addresses: []string{w.edge.admin}, Token: adminToken, Timeout: patience})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// awaitLinked waits until so many nodes of an edge that wants the admin token are linked.
func awaitLinked(w *world, n int) {
	w.t.Helper()
	c := locked(w)
	await(w.t, fmt.Sprintf("%d nodes are linked", n), func() bool {
		list, err := c.Nodes(w.t.Context())
		if err != nil {
			return false
		}
		linked := 0
		for _, node := range list.Nodes {
			if slices.ContainsFunc(node.Links, func(l adminapi.NodeLink) bool { return l.State == "ready" }) {
				linked++
			}
		}
		return linked == n
	})
}

// demand is clients that ask again and again, one request each at a time.
type demand struct {
	model, tokens string
	clients       int
	long          bool
}

// loadOf keeps the world busy until the test ends.
func loadOf(w *world, all []demand) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	w.t.Cleanup(func() { cancel(); wait.Wait() })
	for _, d := range all {
		for i := range d.clients {
			wait.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					prompt := "hello"
					if d.long {
						prompt = strings.Repeat("a long prompt ", 120)
					}
					call(ctx, w.edge.openai, ask{model: d.model, token: d.tokens, prompt: prompt, stream: true, key: fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(d.model, ":", "-"), i, n)})
					select {
					case <-ctx.Done():
					case <-time.After(time.Duration(100+37*i%400) * time.Millisecond):
					}
				}
			})
		}
	}
}

// shoot writes what is seen as a PNG of 256 colours.
func (p *tab) shoot(file string) {
	p.t.Helper()
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		p.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, reduced(img)); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil { //nolint:gosec // a picture for everyone
		p.t.Fatal(err)
	}
	p.t.Log(filepath.Base(file), strconv.Itoa(b.Len()/1024)+" KiB")
}

// reduced is a picture with at most 256 colours. A colour stands for those near it, the more frequent one first; how near is
// as near as 256 suffice, so that a sign of a rare colour keeps it.
func reduced(img image.Image) *image.Paletted {
	seen := map[color.RGBA]int{}
	rgba := image.NewRGBA(img.Bounds())
	draw.Draw(rgba, rgba.Bounds(), img, img.Bounds().Min, draw.Src)
	at := func(i int) color.RGBA { return color.RGBA{rgba.Pix[4*i], rgba.Pix[4*i+1], rgba.Pix[4*i+2], 255} }
	for i := range len(rgba.Pix) / 4 {
		seen[at(i)]++
	}
	all := slices.SortedFunc(maps.Keys(seen), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette := colours(all, 0)
	for near := 16; palette == nil; near *= 2 {
		palette = colours(all, near)
	}
	out := image.NewPaletted(img.Bounds(), palette)
	index := make(map[color.RGBA]uint8, len(all))
	for _, c := range all {
		index[c] = uint8(palette.Index(c)) //nolint:gosec // below 256
	}
	for i := range out.Pix {
		out.Pix[i] = index[at(i)]
	}
	return out
}

// colours gives those of which no two are nearer than near (the square of the distance); nil = they are more than 256.
func colours(all []color.RGBA, near int) color.Palette {
	var out color.Palette
	square := func(a, b uint8) int { return (int(a) - int(b)) * (int(a) - int(b)) }
	for _, c := range all {
		if slices.ContainsFunc(out, func(o color.Color) bool {
			p := o.(color.RGBA) //nolint:errcheck // all are
			return square(p.R, c.R)+square(p.G, c.G)+square(p.B, c.B) <= near
		}) {
			continue
		}
		if len(out) == 256 {
			return nil
		}
		out = append(out, c)
	}
	return out
}
