package ollama_test

import (
	"net"
	"testing"

	"iop/noded/adapter/ollama"
	"iop/noded/adapter/ollama/recorded"
)

// Fault: an image for a model without vision was left out by Ollama without a word, and the client got a 200.
func TestAnImageThatTheModelWouldNotSeeIsRefused(t *testing.T) {
	image := `{"model":"tiny","messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}}]}]}`
	text := `{"model":"tiny","messages":[{"role":"user","content":"a"}]}`
	for name, c := range map[string]struct {
		body, show string
		status     int
		asked      int
	}{
		"a blind model":               {image, jsonAnswer(200, recorded.Shown), 400, 1},
		"a seeing one":                {image, jsonAnswer(200, `{"capabilities":["completion","vision"]}`), 200, 2},
		"an old Ollama":               {image, jsonAnswer(200, `{"details":{}}`), 200, 2},
		"one that can't be asked":     {image, jsonAnswer(404, `{"error":"model 'tiny' not found"}`), 200, 2},
		"without an image, not asked": {text, "", 200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, func(_ int, a asked, _ net.Conn) (string, bool) {
				if a.path == "/api/show" {
					return c.show, false
				}
				return ndjson(said1, doneStop), false
			})
			a := newAdapter(t, ollama.Config{BaseURL: f.url()})
			r := ask(t, a, post("/v1/chat/completions", c.body))
			if r.status != c.status || len(f.got()) != c.asked {
				t.Fatalf("status %d after %d questions: %s", r.status, len(f.got()), r.body.String())
			}
			if e := whole(t, r).Error; c.status == 400 && (e == nil || e.Code != "unsupported_value" || e.Param != "messages[1].content[1]") {
				t.Errorf("%s", r.body.String())
			}
		})
	}
}
