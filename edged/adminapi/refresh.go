package adminapi

import "encoding/json"

// RefreshRequest says what POST /refresh is to do. The body is File; the rest travels in the query.
type RefreshRequest struct {
	// File is the candidate edge file; empty = the edge reads its own file on disk again.
	File []byte
	// DryRun (?dry_run=true) reports what would be done and changes nothing.
	DryRun bool
	// LiveOnly (?live_only=true) applies what can be changed while all runs, and leaves the rest.
	LiveOnly bool
	// Expected (?expected_revision=N) is the revision that the caller saw; nil = any.
	Expected *uint64
}

// RefreshReport answers POST /refresh and is what iopctl refresh prints. Lists are sorted and never null.
type RefreshReport struct {
	Result   string `json:"result"` // one of the Refresh constants
	DryRun   bool   `json:"dry_run"`
	LiveOnly bool   `json:"live_only"`
	File     string `json:"file"`     // that was read on the edge; "" = the candidate came with the call
	Revision uint64 `json:"revision"` // of the configuration that is in effect now; of a conflict: the one that won

	ChangedNodes     []string      `json:"changed_nodes"`
	ChangedProviders []string      `json:"changed_providers"`
	ChangedModels    []string      `json:"changed_models"`
	ChangedPaths     []ChangedPath `json:"changed_paths"`
	// RestartRequiredPaths are those of ChangedPaths that were not, or would not be, applied.
	RestartRequiredPaths []string `json:"restart_required_paths"`

	WaitersAffected int              `json:"waiters_affected"` // pending requests that lose or gain a candidate
	Waiters         []AffectedWaiter `json:"waiters"`          // the first of them, at most WaitersMax
	// ProvidersOverCapacity have more in flight than the new capacity: they get nothing new until it has fallen.
	ProvidersOverCapacity []OverCapacity `json:"providers_over_capacity"`

	PushedNodes  []string `json:"pushed_nodes"`  // have confirmed this revision; in a dry run: would be sent it at once
	PendingNodes []string `json:"pending_nodes"` // have not yet: offline, not ready or slow; they get it before they are ready

	Problems []ConfigProblem `json:"problems"` // of an invalid candidate, all at once
	Warnings []ConfigWarning `json:"warnings"`
}

// The results of a refresh.
const (
	RefreshNoChange        = "no_change"        // there is nothing to apply
	RefreshDryRun          = "dry_run"          // it would be applied
	RefreshApplied         = "applied"          // with LiveOnly: all but RestartRequiredPaths
	RefreshRestartRequired = "restart_required" // nothing was applied, because of RestartRequiredPaths
	RefreshInvalid         = "invalid"          // nothing was applied, because of Problems
	RefreshConflict        = "conflict"         // nothing was applied, because another change came first
)

// WaitersMax is how many waiters a report names.
const WaitersMax = 100

// ChangedPath is one value that differs. Entries of lists are named by their id: nodes[gpu-node].providers[gpu-1].capacity,
// those of maps by their key: models[ornith:35b].providers.gpu-1.
// Secrets and hashes of tokens are shown as a fingerprint only.
type ChangedPath struct {
	Path  string          `json:"path"`
	Old   json.RawMessage `json:"old"` // null = was not there
	New   json.RawMessage `json:"new"` // null = is not there any more
	Class string          `json:"class"`
}

// The classes of a changed path.
const (
	ClassLive            = "live"
	ClassRestartRequired = "restart_required"
)

// AffectedWaiter is a pending request whose candidates change.
type AffectedWaiter struct {
	Request string   `json:"request"`
	Model   string   `json:"model"`
	Gains   []string `json:"gains"` // providers
	Loses   []string `json:"loses"`
}

// OverCapacity is a provider with more in flight than its new capacity. A null capacity is unlimited.
type OverCapacity struct {
	Provider     string `json:"provider"`
	InFlight     int    `json:"in_flight"`
	Capacity     *int   `json:"capacity"`
	LongInFlight int    `json:"long_in_flight"`
	LongCapacity *int   `json:"long_capacity"`
}

// ConfigProblem is one fault of a configuration file.
type ConfigProblem struct {
	Path  string `json:"path"`
	Line  int    `json:"line"` // 0 = unknown
	Cause string `json:"cause"`
	Cure  string `json:"cure"`
}

// ConfigWarning is something in a file that is accepted, but likely not meant.
type ConfigWarning struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}
