package respond

import "testing"

// TestAgentHearsNothingWhileTheModelReads: codex takes no comment for a sign of life and gives up after its idle time,
// while llama-server reads a long prompt and sends comments alone. They become events until the answer has begun.
func TestAgentHearsNothingWhileTheModelReads(t *testing.T) {
	q, problem := Read([]byte(`{"model":"m","input":"x","stream":true}`), func(bool) string { return "resp_1" })
	if problem != nil {
		t.Fatal(problem)
	}
	r := NewRun(q, "m", 1)
	r.Open(false)
	r.Begin(true)
	for _, piece := range []string{":\n\n", ": pi", "ng\n", "\n"} {
		want := map[string]int{":\n\n": 1, "ng\n": 1}[piece]
		if got := r.Write([]byte(piece)); len(got) != want || want == 1 && got[0].Type != EventInProgress {
			t.Errorf("%q gave %d events", piece, len(got))
		}
	}
	if got := r.Write([]byte(`data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n")); len(got) == 0 {
		t.Error("the answer gave no event")
	}
	if got := r.Write([]byte(": ping\n\n")); len(got) != 0 {
		t.Errorf("a comment in the answer gave %d events", len(got))
	}
}
