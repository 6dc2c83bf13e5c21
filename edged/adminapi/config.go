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
	Revisions []ConfigRevision `json:"revisions"` // newest first, as far as the log reaches; at most 100
	// Reading: the log is long, and its older part was not read yet. Ask again for the rest.
	Reading bool `json:"reading,omitempty"`
}

// ConfigRevision is a revision of the configuration.
type ConfigRevision struct {
	Revision uint64    `json:"revision"`
	Index    uint64    `json:"index"` // of the log's entry that brought it; earlier: of the first at which it is known
	Time     time.Time `json:"time"`  // of that entry
	Edge     string    `json:"edge"`  // through which it came; "" = that is not in the log any more
	// Source is start (the file that an edge was started with), refresh (iopctl refresh, SIGHUP, POST /refresh), or earlier: it
	// came before the part of the log that is kept.
	Source string `json:"source"`
	// Changes are what it has changed, by path, at most some hundred; null = there was none before, or what was is not known:
	// it is the oldest one that the log tells of. Its document is at GET /config/history/{revision} while it is kept.
	Changes     []ChangedPath `json:"changes"`
	ChangesLeft int           `json:"changes_left,omitempty"` // more that are not in Changes
}
