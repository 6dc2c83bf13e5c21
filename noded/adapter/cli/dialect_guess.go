package cli

import "encoding/json"

// guessed waits for an object whose type only one dialect begins with, and goes on in that.
type guessed struct {
	r     *reply
	known dialect
}

func (g *guessed) object(line []byte) error {
	if g.known == nil {
		var e struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(line, &e) != nil {
			return nil // not an event
		}
		switch e.Type {
		case "thread.started", "turn.started":
			g.known = newCodex(g.r)
		case "system":
			g.known = newClaude(g.r)
		case "init":
			g.known = newGemini(g.r)
		default:
			return nil
		}
	}
	return g.known.object(line)
}

func (g *guessed) missing() string {
	if g.known == nil {
		return "an event of codex, claude or gemini"
	}
	return g.known.missing()
}
