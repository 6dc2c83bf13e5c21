package metrics

// The exported names. Times are seconds, sizes bytes.
const (
	nameRequests         = "iop_requests_total"
	nameRequestDuration  = "iop_request_duration_seconds"
	nameFirstByte        = "iop_first_byte_seconds"
	nameQueueWait        = "iop_queue_wait_seconds"
	nameTokensIn         = "iop_tokens_in_total"
	nameTokensOut        = "iop_tokens_out_total"
	nameOpenRequests     = "iop_open_requests"
	nameRequeues         = "iop_requeues_total"
	nameReleaseRetries   = "iop_release_retries_total"
	nameGranted          = "iop_leases_granted_total"
	nameReturned         = "iop_leases_returned_total"
	nameCommit           = "iop_commit_seconds"
	nameBatch            = "iop_commit_batch_commands"
	nameApply            = "iop_apply_seconds"
	nameLinkEvents       = "iop_link_events_total"
	nameGateRefusals     = "iop_gate_refusals_total"
	nameUnknownRuns      = "iop_unknown_run_frames_total"
	nameQueuePending     = "iop_queue_pending"
	nameQueueMax         = "iop_queue_max"
	nameQueueLong        = "iop_queue_long_pending"
	nameQueueDetached    = "iop_queue_detached"
	nameProviderUp       = "iop_provider_connected"
	nameProviderHealthy  = "iop_provider_healthy"
	nameProviderDraining = "iop_provider_draining"
	nameProviderCapacity = "iop_provider_capacity"
	nameProviderInFlight = "iop_provider_in_flight"
	nameProviderLongCap  = "iop_provider_long_capacity"
	nameProviderLong     = "iop_provider_long_in_flight"
	nameProviderFencing  = "iop_provider_fencing"
	nameProviderQueued   = "iop_provider_queued"
	nameProviderLongQ    = "iop_provider_long_queued"
	nameNodeUp           = "iop_node_connected"
	nameNodeGeneration   = "iop_node_generation"
	nameNodeLinks        = "iop_node_links"
	nameAppliedIndex     = "iop_applied_index"
	nameTerm             = "iop_term"
	nameRevision         = "iop_config_revision"
	nameLeader           = "iop_leader"
	nameLeaderChanges    = "iop_leader_changes_total"
	nameLogBytes         = "iop_log_bytes"
	nameSnapshot         = "iop_snapshot_seconds"
	namePeerUp           = "iop_peer_up"
	namePeerRoundTrip    = "iop_peer_round_trip_seconds"
	namePeerForwarded    = "iop_peer_forwarded_batches_total"
)

// The labels.
const (
	labelModel     = "model"
	labelProvider  = "provider"
	labelOutcome   = "outcome"
	labelReason    = "reason"
	labelClass     = "class"
	labelPrincipal = "principal_ref"
	labelToken     = "token_ref"
	labelNode      = "node"
	labelEdge      = "edge"
	labelState     = "state"
	labelEvent     = "event"
	labelPeer      = "peer"
	labelVerdict   = "verdict"
)

// Unknown is the label of a model that the configuration does not have; None that of a request without a provider,
// principal or token.
const (
	Unknown = "unknown"
	None    = "none"
)

// Outcome is how a client's request ended.
type Outcome uint8

// The outcomes of requests.
const (
	OutcomeOK             Outcome = iota // answered below 400, to its end
	OutcomeBackendRefused                // the backend's own answer was 400 or above
	OutcomeBackendError                  // the backend broke, timed out or could not be reached
	OutcomeCanceled                      // the client left, or an operator took the request out of the queue
	OutcomeQueueFull                     // 429
	OutcomeQueueTimeout                  // waited past its deadline
	OutcomeUnavailable                   // no live candidate
	OutcomeModelNotFound                 // no such model
	OutcomeContextTooLong                // too long for every candidate
	OutcomeUnsupported                   // no candidate can do it
	OutcomeConflict                      // the request id is in progress elsewhere
	OutcomeUnauthorized                  // bad or missing key
	OutcomeMalformed                     // the request could not be understood
	OutcomeTooLarge                      // over max_body_bytes
	OutcomeClientTimeout                 // the client sent its body too slowly
	OutcomeOverloaded                    // the log is too far behind
	OutcomeStopping                      // the edge is stopping
	OutcomeInternal                      // the log failed, or something broke in the edge
	outcomes
)

var outcomeNames = [outcomes]string{
	"ok", "backend_refused", "backend_error", "canceled", "queue_full", "queue_timeout", "unavailable",
	"model_not_found", "context_too_long", "unsupported", "conflict", "unauthorized", "malformed", "too_large",
	"client_timeout", "overloaded", "stopping", "internal",
}

func (o Outcome) String() string {
	if o < outcomes {
		return outcomeNames[o]
	}
	return outcomeNames[OutcomeInternal]
}
