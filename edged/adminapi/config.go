package adminapi

import (
	"encoding/json"
	"time"
)

// Config answers GET /config: the cluster part that is in effect, with the keys of the edge file. It holds no secret.
type Config struct {
	Revision uint64          `json:"revision"`
	Document json.RawMessage `json:"document"` // null = none was applied yet
}

// ConfigHistory answers GET /config/history.
type ConfigHistory struct {
	Revisions []ConfigRevision `json:"revisions"` // newest first, those since the edge that answers was started
}

// ConfigRevision is a revision of the configuration.
type ConfigRevision struct {
	Revision uint64    `json:"revision"`
	Index    uint64    `json:"index"` // of the log, at which the edge read it
	Time     time.Time `json:"time"`
	Edge     string    `json:"edge"`   // through which it came; "" = another than this one
	Source   string    `json:"source"` // start, refresh, signal, other
	// Changes are what it has changed, by path, at most some hundred; null = what was before is not known, as of the first
	// revision that the edge found at its start. Its document is at GET /config/history/{revision} while it is kept.
	Changes     []ChangedPath `json:"changes"`
	ChangesLeft int           `json:"changes_left,omitempty"` // more that are not in Changes
}
