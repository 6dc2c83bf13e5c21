package talk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"iop/noded/adapter/ollama/recorded"
)

// native is what matters of a request to Ollama's own API.
type native struct {
	Tools    []json.RawMessage `json:"tools"`
	Input    []string          `json:"input"`
	Logprobs bool              `json:"logprobs"`
	Options  struct {
		Stop       []string `json:"stop"`
		NumPredict int      `json:"num_predict"`
	} `json:"options"`
}

// ollama replays what was recorded of one.
func (t *turn) ollama(path string) {
	var q native
	_ = json.Unmarshal(t.body, &q) // what can't be read has been refused
	switch path {
	case "/api/chat":
		t.lines(q.chat(t.script))
	case "/api/generate":
		t.lines([]string{recorded.Wrote, recorded.WroteDone})
	case "/api/embed":
		rows := strings.TrimSuffix(strings.Repeat("[0.5,-0.25],", len(q.Input)), ",")
		t.json(http.StatusOK, fmt.Sprintf(`{"model":"tiny","embeddings":[%s],"total_duration":14143917,"load_duration":1019500,"prompt_eval_count":2}`, rows))
	case "/api/show":
		t.json(http.StatusOK, strings.Replace(recorded.Shown, `"completion"`, `"completion","tools","vision","thinking"`, 1))
	default:
		t.json(http.StatusNotFound, "404 page not found")
	}
}

// chat are the lines of an answer to /api/chat.
func (q *native) chat(s Script) []string {
	first := recorded.Said1
	if q.Logprobs {
		first = strings.Replace(recorded.Likely1, `"content":" 1"`, `"content":`+quoted(FirstPiece), 1)
	}
	switch {
	case s == Call && len(q.Tools) > 0:
		return []string{recorded.Called, recorded.DoneStop}
	case s == Empty:
		return []string{recorded.DoneStop}
	case s == Object:
		return []string{strings.Replace(recorded.Said1, quoted(FirstPiece), quoted(ObjectText), 1), recorded.DoneStop}
	case s == Refuse: // Ollama has no place for it
		return []string{strings.Replace(recorded.Said1, quoted(FirstPiece), quoted(Refusal), 1), recorded.DoneStop}
	case s == Think:
		return []string{recorded.Thought, first, recorded.Said2, recorded.DoneStop}
	case len(q.Options.Stop) > 0:
		return []string{first, recorded.DoneStop}
	case q.Options.NumPredict == 1:
		return []string{first, recorded.DoneLong}
	}
	return []string{first, recorded.Said2, recorded.DoneStop}
}

// lines sends an answer as it was framed.
func (t *turn) lines(lines []string) {
	t.w.Header().Set("Content-Type", "application/x-ndjson")
	for _, l := range lines {
		t.send(l + "\n")
		if t.script == Break || t.script == Linger {
			t.said()
			return
		}
	}
}
